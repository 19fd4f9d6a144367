-- Events come in over HTTP or with `headrace send`. An event whose event_id was seen before is a
-- duplicate, and an event that comes more than ten minutes late is marked late; both are counted.
CREATE STREAM clicks (
  user STRING NOT NULL,
  url STRING NOT NULL,
  ts TIMESTAMP NOT NULL,
  ms BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (source = 'http', key = 'user', id = 'event_id');

CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'lookups/sections.csv';

-- Who looks at what, hour by hour.
CREATE VIEW visitors AS
SELECT c.url, s.section, window(ts, '1 hour') AS hour,
       count(*) AS hits, count(DISTINCT user) AS visitors, avg(ms) AS ms
FROM clicks c LEFT JOIN sections s ON c.url = s.url
GROUP BY c.url, s.section, window(ts, '1 hour');

-- A view may read other views; it is answered from their answers.
CREATE VIEW busiest AS
SELECT url, sum(hits) AS hits_total FROM visitors GROUP BY url ORDER BY hits_total DESC LIMIT 3;
