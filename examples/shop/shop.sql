-- Clicks of a web shop, out of thin air. Like real ones they come late, twice and broken: the balance
-- that `headrace status` shows accounts for each of them.
CREATE STREAM clicks (
  user STRING NOT NULL,
  url STRING NOT NULL,
  referrer STRING,
  ts TIMESTAMP NOT NULL,
  ms BIGINT,
  price DOUBLE,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (
  source = 'generator', key = 'user', id = 'event_id',
  rate = '500', out_of_order = '0.05', late_by = '30 minutes', duplicates = '0.02', malformed = '0.01',
  user.cardinality = '2000',
  url.values = '/home,/shoes,/hats,/cart,/pay,/help',
  referrer.values = 'https://duckduckgo.com/,https://shop.example/,https://mastodon.social/,https://www.google.com/'
);

CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'lookups/sections.csv';

-- A derived stream: one event in, one event out. `channel` is in functions.py.
CREATE STREAM visits AS
SELECT c.user, c.url, c.ts, c.ms, c.price, s.section, channel(c.referrer) AS channel
FROM clicks c LEFT JOIN sections s ON c.url = s.url;

-- Who looks at what, hour by hour. `visitors` is exact up to the boundary and estimated after it.
CREATE VIEW visitors AS
SELECT url, section, window(ts, '1 hour') AS hour,
       count(*) AS hits, count(DISTINCT user) AS visitors, avg(ms) AS ms
FROM visits
GROUP BY url, section, window(ts, '1 hour');

-- Sales by the minute and by the way the customer came.
CREATE VIEW sales AS
SELECT window(ts, '1 minute') AS minute, channel,
       count(*) AS payments, sum(price) AS revenue, max(price) AS largest
FROM visits
WHERE url = '/pay'
GROUP BY window(ts, '1 minute'), channel;

-- One row for all of history.
CREATE VIEW totals AS
SELECT count(*) AS events, count(DISTINCT user) AS users, min(ts) AS first, max(ts) AS last,
       avg(ms) AS ms, stddev(ms) AS ms_deviation
FROM clicks;

-- A view over a view is answered from its answer.
CREATE VIEW busiest AS
SELECT url, sum(hits) AS hits_total FROM visitors GROUP BY url ORDER BY hits_total DESC LIMIT 3;
