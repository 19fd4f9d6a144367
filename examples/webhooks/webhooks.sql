-- Webhooks of a code forge: nested JSON of which only what is declared here is read. The rest stays in the raw
-- event. A column is the field of its name, or what is at its path.
CREATE STREAM forge (
  delivery STRING NOT NULL,
  event STRING NOT NULL COMMENT 'push, pull_request, review or issue',
  action STRING DEFAULT 'pushed',
  actor_id BIGINT FROM '$.actor.id' NOT NULL,
  repo STRING FROM '$.repository.name' NOT NULL,
  repository STRUCT<owner: STRUCT<login: STRING>, private: BOOLEAN, properties: MAP<STRING, STRING>>,
  pull BIGINT FROM '$.pull_request.number',
  pull_request STRUCT<labels: ARRAY<STRUCT<name: STRING>>, additions: INT, deletions: INT>,
  issue STRUCT<number: BIGINT, labels: ARRAY<STRUCT<name: STRING>>>,
  commits ARRAY<STRUCT<sha: STRING, author: STRUCT<login: STRING>, files: ARRAY<STRING>>>,
  at TIMESTAMP FROM '$.timestamp' FORMAT 'epoch_ms' NOT NULL,
  WATERMARK at DELAY OF INTERVAL 1 HOUR
) WITH (source = 'files', path = 'inbox/forge*.ndjson', key = 'repo', id = 'delivery', partitions = 1);

-- Webhooks of a payment provider. Money is DECIMAL: '19.90' and 0.8271 are read digit by digit, and what has
-- more digits than the type is a dead letter, not rounded. `data` differs from type to type, so it is a VARIANT.
CREATE STREAM payments (
  id STRING NOT NULL,
  type STRING NOT NULL COMMENT 'charge.succeeded, charge.failed or charge.refunded',
  customer_id STRING FROM '$.customer.id' NOT NULL,
  customer STRUCT<country: STRING, tags: MAP<STRING, STRING>>,
  amount DECIMAL(14,3) NOT NULL,
  amount_minor BIGINT NOT NULL COMMENT 'in cents, yen or fils',
  currency STRING DEFAULT 'EUR',
  fee DECIMAL(14,4) DEFAULT 0,
  items ARRAY<STRUCT<sku: STRING, quantity: INT, price: DECIMAL(14,3)>>,
  metadata MAP<STRING, STRING>,
  data VARIANT,
  created TIMESTAMP FORMAT 'epoch_s' NOT NULL,
  WATERMARK created DELAY OF INTERVAL 1 HOUR
) WITH (source = 'files', path = 'inbox/payments*.ndjson', key = 'customer_id', id = 'id', partitions = 1);

-- One event for each commit of a push, each label of what was opened, and each item that was paid.
CREATE STREAM commits AS
SELECT repo, at, commit.author.login AS author, size(commit.files) AS files
FROM forge LATERAL VIEW explode(commits) t AS commit;

CREATE STREAM labelled AS
SELECT event, repo, at, label.name AS label
FROM forge LATERAL VIEW explode(coalesce(pull_request.labels, issue.labels)) t AS label
WHERE action = 'opened';

CREATE STREAM sold AS
SELECT currency, customer.country AS country, created, item.sku AS sku, item.quantity AS quantity,
       item.quantity * item.price AS amount
FROM payments LATERAL VIEW explode(items) t AS item
WHERE type = 'charge.succeeded';

-- What was taken, day by day. Each sum is exact, in batch and in speed.
CREATE VIEW takings AS
SELECT window(created, '1 day') AS day, currency,
       count_if(type = 'charge.succeeded') AS charges,
       count_if(type = 'charge.refunded') AS refunds,
       sum(amount) FILTER (WHERE type = 'charge.succeeded') AS taken,
       sum(amount_minor) FILTER (WHERE type = 'charge.succeeded') AS taken_minor,
       coalesce(sum(amount) FILTER (WHERE type = 'charge.refunded'), 0) AS refunded,
       sum(fee) AS fees
FROM payments
GROUP BY window(created, '1 day'), currency;

-- A view over a view, and one with a window function: the month so far.
CREATE VIEW refund_rates AS
SELECT currency, sum(charges) AS charges, sum(refunds) AS refunds, sum(taken) AS taken, sum(refunded) AS refunded,
       round(100 * sum(refunds) / sum(charges), 2) AS refunds_percent
FROM takings GROUP BY currency;

CREATE VIEW takings_to_date AS
SELECT currency, day.start AS day, taken,
       sum(taken) OVER (PARTITION BY currency ORDER BY day.start) AS taken_to_date
FROM takings;

CREATE VIEW customers AS
SELECT currency, customer_id, max(customer.country) AS country, max(customer.tags['plan']) AS plan,
       count(*) AS charges, sum(amount) AS spent, max(amount) AS largest
FROM payments WHERE type = 'charge.succeeded'
GROUP BY currency, customer_id;

CREATE VIEW top_customers AS
SELECT currency, customer_id, country, spent, rank() OVER (PARTITION BY currency ORDER BY spent DESC) AS place
FROM customers QUALIFY place <= 3;

CREATE VIEW products AS
SELECT sku, currency, sum(quantity) AS sold, sum(amount) AS taken FROM sold GROUP BY sku, currency;

-- Paths into a VARIANT. A payment by transfer has no card, so its brand is NULL.
CREATE VIEW methods AS
SELECT data:method.type::string AS method, data:method.card.brand::string AS brand,
       count(*) AS charges, count_if(type = 'charge.failed') AS failed,
       max(data:risk.score::int) AS risk_max
FROM payments WHERE type <> 'charge.refunded'
GROUP BY data:method.type::string, data:method.card.brand::string;

CREATE VIEW reasons AS
SELECT type, coalesce(data:failure.code::string, data:reason::string) AS reason, metadata['channel'] AS channel,
       count(*) AS events
FROM payments WHERE type <> 'charge.succeeded'
GROUP BY type, coalesce(data:failure.code::string, data:reason::string), metadata['channel'];

CREATE VIEW activity AS
SELECT repo, max(repository.properties['language']) AS language, window(at, '1 day') AS day,
       count_if(event = 'push') AS pushes, count_if(event = 'issue') AS issues, count_if(event = 'review') AS reviews,
       count(DISTINCT actor_id) AS people
FROM forge GROUP BY repo, window(at, '1 day');

-- A pull request is opened and ended by two events; how long it took is told by the view over them.
CREATE VIEW pulls AS
SELECT repo, pull, min(at) FILTER (WHERE action = 'opened') AS opened, max(at) FILTER (WHERE action = 'merged') AS merged,
       max(pull_request.additions + pull_request.deletions) AS lines
FROM forge WHERE event = 'pull_request' GROUP BY repo, pull;

CREATE VIEW merge_times AS
SELECT repo, count(*) AS merged, round(avg(unix_millis(merged) - unix_millis(opened)) / 3600000, 1) AS hours_mean,
       round(max(unix_millis(merged) - unix_millis(opened)) / 3600000, 1) AS hours_max
FROM pulls WHERE merged IS NOT NULL GROUP BY repo;

-- Weeks from Monday: windows are aligned to 1970-01-01, a Thursday, and the fourth argument moves them.
CREATE VIEW commits_by_author AS
SELECT author, window(at, '7 days', '7 days', '4 days') AS week, count(*) AS commits, sum(files) AS files
FROM commits GROUP BY author, window(at, '7 days', '7 days', '4 days');

CREATE VIEW labels AS
SELECT label, event, count(*) AS opened, max(at) AS last FROM labelled GROUP BY label, event;

-- Three failed charges of a customer within half an hour: a stolen card is being tried.
CREATE STREAM tried_cards AS
count(*) >= 3 WITHIN INTERVAL 30 MINUTES PER customer_id FROM payments WHERE type = 'charge.failed';

CREATE VIEW tried_customers AS
SELECT customer_id, count(*) AS times, min(began) AS first, max(ended) AS last FROM tried_cards GROUP BY customer_id;

CREATE RULE card_tried AS
SELECT customer_id, began, ended FROM tried_cards
SEVERITY 'high'
SUPPRESS FOR INTERVAL 1 DAY PER customer_id
NOTIFY FILE 'alerts.ndjson';
