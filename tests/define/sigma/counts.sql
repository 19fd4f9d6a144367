-- Made by `headrace sigma` from counts.yml.
-- It needs a stream events with:
--   ts TIMESTAMP, its event time, with a WATERMARK
--   event_code BIGINT, in Sigma event.code
--   event_outcome STRING, in Sigma event.outcome
--   source_ip STRING, in Sigma source.ip
--   target_ip STRING, in Sigma target.ip
--   target_port STRING, in Sigma target-port
--   user_name STRING, in Sigma user.name

-- Many failures on one target (counts.yml:12)
CREATE STREAM brute_force_reached AS
count(*) >= 20 WITHIN INTERVAL 2 MINUTES PER target_ip, target_port
FROM events
WHERE lower(event_outcome) = 'failure'
  AND event_code IN (4625, 4771)
  AND NOT coalesce(user_name LIKE '%$', false);

CREATE RULE brute_force AS
SELECT * FROM brute_force_reached
SEVERITY 'high';

-- One source tries many users (counts.yml:22)
CREATE STREAM one_source_tries_many_users_reached AS
count(DISTINCT user_name) > 5 WITHIN INTERVAL 1 HOUR PER source_ip
FROM events
WHERE lower(event_outcome) = 'failure'
  AND event_code IN (4625, 4771)
  AND NOT coalesce(user_name LIKE '%$', false);

CREATE RULE one_source_tries_many_users AS
SELECT * FROM one_source_tries_many_users_reached
SEVERITY 'info';
