CREATE STREAM clicks (user STRING);
CREATE VIEW v AS SELECT count(*) AS n FROM clicks GROUP BY count_window(3, 5);
