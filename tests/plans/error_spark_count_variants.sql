CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, body VARIANT, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT count(DISTINCT body) AS n FROM clicks;
