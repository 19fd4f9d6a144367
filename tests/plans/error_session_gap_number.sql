CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE VIEW answer AS
SELECT count(*) AS n FROM clicks GROUP BY session_window(ts, 300);
