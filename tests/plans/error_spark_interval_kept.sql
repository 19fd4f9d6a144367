CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, body VARIANT, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT last(ts - TIMESTAMP '2026-01-01 00:00:00') AS age FROM clicks;
