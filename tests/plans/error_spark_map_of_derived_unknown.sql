CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE STREAM named AS SELECT user FROM clicks;
CREATE VIEW v AS SELECT url, count(*) AS n FROM named GROUP BY url;
