CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, body VARIANT, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT collect_set(map(url, ms)) AS s FROM clicks;
