-- A project in which each screen of the console has something to show.
CREATE STREAM clicks (
  user STRING NOT NULL,
  url STRING NOT NULL,
  ts TIMESTAMP NOT NULL,
  ms BIGINT,
  price DOUBLE,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE
) WITH (
  source = 'generator', key = 'user', id = 'event_id', partitions = 2,
  rate = '40', out_of_order = '0.1', late_by = '3 minutes', duplicates = '0.05', malformed = '0.03',
  user.cardinality = '300', url.values = '/home,/shoes,/hats,/cart,/pay,/help'
);

CREATE STREAM notes (author STRING NOT NULL, note STRING, ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE
) WITH (source = 'http', id = 'event_id', partitions = 1);

CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'lookups/sections.csv';

CREATE STREAM visits AS
SELECT c.user, c.url, c.ts, c.ms, c.price, s.section
FROM clicks c LEFT JOIN sections s ON c.url = s.url;

CREATE VIEW traffic AS
SELECT url, window(ts, '10 seconds') AS slot, count(*) AS hits, avg(ms) AS ms
FROM visits GROUP BY url, window(ts, '10 seconds');

CREATE VIEW visitors AS
SELECT section, window(ts, '1 hour') AS hour, count(*) AS hits, count(DISTINCT user) AS visitors
FROM visits GROUP BY section, window(ts, '1 hour');

CREATE VIEW totals AS
SELECT count(*) AS events, count(DISTINCT user) AS users, max(ts) AS last, avg(ms) AS ms FROM clicks;

CREATE VIEW busiest AS
SELECT url, sum(hits) AS hits_total FROM traffic GROUP BY url ORDER BY hits_total DESC LIMIT 3;

CREATE VIEW authors AS SELECT author, count(*) AS notes, max(ts) AS last FROM notes GROUP BY author;

CREATE RULE big_basket AS
SELECT user, price, ts FROM clicks WHERE url = '/pay' AND price > 150
SEVERITY 'medium' SUPPRESS FOR INTERVAL 10 SECONDS PER user;

CREATE RULE shouting AS
SELECT author, note, ts FROM notes WHERE note LIKE '%!!!%' SEVERITY 'high';
