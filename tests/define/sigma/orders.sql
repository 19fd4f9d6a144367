-- Made by `headrace sigma` from orders.yml.
-- It needs a stream events with:
--   ts TIMESTAMP, its event time, with a WATERMARK
--   action STRING
--   client_ip STRING
--   outcome STRING
--   source_ip STRING
--   user STRING

-- First a failure, then a success, then a key (orders.yml:20)
CREATE STREAM taken_over_found AS
SELECT * FROM events MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ts
  MEASURES first(ts) AS began, last(ts) AS ended
  PATTERN (failure success new_key) WITHIN INTERVAL 10 MINUTES SKIP TILL NEXT
  DEFINE
    failure AS lower(outcome) = 'fail',
    success AS lower(outcome) = 'ok',
    new_key AS lower(action) LIKE 'key!_%' ESCAPE '!' AND lower(action) LIKE '%!_added' ESCAPE '!');

CREATE RULE taken_over AS
SELECT * FROM taken_over_found
SEVERITY 'critical';

-- All three in any order (orders.yml:29)
CREATE STREAM all_three_found AS
SELECT * FROM events MATCH_RECOGNIZE (
  ORDER BY ts
  MEASURES first(ts) AS began, last(ts) AS ended
  PATTERN (PERMUTE(failure, success, new_key)) WITHIN INTERVAL 90 SECONDS SKIP TILL NEXT
  DEFINE
    failure AS lower(outcome) = 'fail',
    success AS lower(outcome) = 'ok',
    new_key AS lower(action) LIKE 'key!_%' ESCAPE '!' AND lower(action) LIKE '%!_added' ESCAPE '!');

CREATE RULE all_three AS
SELECT * FROM all_three_found
SEVERITY 'medium';

-- A key and a failure from one address (orders.yml:37)
CREATE STREAM from_one_address_events AS
SELECT ts, action, outcome, client_ip, source_ip, user,
  CASE
    WHEN lower(action) LIKE 'key!_%' ESCAPE '!' AND lower(action) LIKE '%!_added' ESCAPE '!' THEN client_ip
    WHEN lower(outcome) = 'fail' THEN source_ip END AS ip
FROM events
WHERE (lower(action) LIKE 'key!_%' ESCAPE '!' AND lower(action) LIKE '%!_added' ESCAPE '!')
  OR lower(outcome) = 'fail';

CREATE STREAM from_one_address_found AS
SELECT * FROM from_one_address_events MATCH_RECOGNIZE (
  PARTITION BY ip, user ORDER BY ts
  MEASURES first(ts) AS began, last(ts) AS ended
  PATTERN (PERMUTE(new_key, failure)) WITHIN INTERVAL 1 DAY SKIP TILL NEXT
  DEFINE
    new_key AS lower(action) LIKE 'key!_%' ESCAPE '!' AND lower(action) LIKE '%!_added' ESCAPE '!',
    failure AS lower(outcome) = 'fail');

CREATE RULE from_one_address AS
SELECT * FROM from_one_address_found
SEVERITY 'low';
