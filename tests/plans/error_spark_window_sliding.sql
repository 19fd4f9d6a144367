CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT window(ts, '1 hour', '5 minutes') AS w, count(*) AS n
FROM clicks GROUP BY window(ts, '1 hour', '5 minutes');
