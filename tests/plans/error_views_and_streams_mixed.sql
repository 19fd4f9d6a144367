CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE VIEW answer AS
SELECT clicks.user, count(*) AS n FROM clicks JOIN hits ON hits.url = clicks.url GROUP BY clicks.user;
CREATE VIEW hits AS SELECT url, count(*) AS n FROM clicks GROUP BY url;
