CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW hits AS SELECT url, count(*) AS n FROM clicks GROUP BY url;
CREATE STREAM top AS SELECT url FROM hits;
