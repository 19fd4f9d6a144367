CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, body VARIANT, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT url, collect_set(user) AS users FROM clicks GROUP BY url ORDER BY users;
