-- Every clause that a view over a stream may have.
CREATE STREAM clicks (
  user STRING NOT NULL, url STRING, ms INT, bytes BIGINT, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (key = 'user', partitions = 3);

CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';

CREATE STREAM read AS
SELECT c.user, p.section, c.ms, c.bytes, c.ts
FROM clicks AS c JOIN pages AS p ON c.url = p.url
WHERE c.ms >= 0;

CREATE VIEW sections AS
SELECT section, window(ts, '1 hour') AS hour, count(*) AS hits, avg(ms) AS ms,
  count(*) FILTER (WHERE ms > 1000) AS slow, count(DISTINCT user) AS users, sum(bytes) AS bytes
FROM read
GROUP BY section, window(ts, '1 hour')
HAVING count(*) > 1
ORDER BY hits DESC, section
LIMIT 10;

CREATE VIEW busiest AS
SELECT section, sum(hits) AS hits FROM sections GROUP BY section;
