CREATE STREAM clicks (user STRING, url STRING, ms INT, tags ARRAY<STRING>, ts TIMESTAMP);
CREATE VIEW answer AS
SELECT window.start AS a, session_window.start AS b, count(*) AS n
FROM clicks GROUP BY window(ts, '1 hour'), session_window(ts, '5 minutes');
