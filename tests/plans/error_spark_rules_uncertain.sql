CREATE STREAM calls (route STRING, type INT, seconds BIGINT, tags ARRAY<STRING>, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
CREATE RULES directions ON calls
  RULE a WHEN type = 1 THEN SET direction = 'I'
  ELSE SET seen = current_timestamp();
