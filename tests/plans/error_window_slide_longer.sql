CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE VIEW answer AS
SELECT window(ts, '5 minutes', '1 hour') AS w, count(*) AS n
FROM clicks GROUP BY window(ts, '5 minutes', '1 hour');
