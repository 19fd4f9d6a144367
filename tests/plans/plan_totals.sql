-- One group for all events, and partials that aggregates share.
CREATE STREAM clicks (user STRING, ms INT, ok BOOLEAN, day DATE) WITH (format = 'csv');

CREATE VIEW totals AS
SELECT count(*) AS n, sum(ms) AS s, avg(ms) AS a, sum(ms) / count(*) + 1 AS q,
  max_by(user, ms) AS slowest, bool_and(ok) AS ok, max(day) AS day
FROM clicks;

CREATE VIEW days AS SELECT DISTINCT day FROM clicks;
