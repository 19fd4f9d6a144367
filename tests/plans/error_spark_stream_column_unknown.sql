CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE TABLE pages (url STRING, section STRING) USING csv LOCATION 'pages.csv';
CREATE STREAM named AS SELECT user, pgae FROM clicks;
