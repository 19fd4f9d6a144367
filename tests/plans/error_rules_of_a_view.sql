CREATE STREAM calls (route STRING, type INT, seconds BIGINT, tags ARRAY<STRING>, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
CREATE VIEW v AS SELECT type, count(*) AS n FROM calls GROUP BY type;
CREATE RULES directions ON v RULE a WHEN type = 1 THEN SET direction = 'I';
