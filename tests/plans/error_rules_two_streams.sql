CREATE STREAM calls (route STRING, type INT, seconds BIGINT, tags ARRAY<STRING>, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
CREATE STREAM others (type INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE RULES directions ON calls c JOIN others o ON c.type = o.type AND o.ts BETWEEN c.ts AND c.ts + INTERVAL 1 MINUTE
  RULE a WHEN c.type = 1 THEN SET direction = 'I';
