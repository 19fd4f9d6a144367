CREATE STREAM calls (route STRING, type INT, seconds BIGINT, tags ARRAY<STRING>, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE routes (route STRING, kind STRING) USING csv LOCATION 'routes.csv';
CREATE RULES directions ON calls c LEFT JOIN routes r ON c.route = r.route
  RULE outgoing WHEN c.type = 1 THEN SET direction = 'O'
  RULE roaming WHEN c.type = 0
    AND r.knd = 'incoming' THEN SET direction = 'R';
