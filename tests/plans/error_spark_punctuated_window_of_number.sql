CREATE STREAM clicks (user STRING, ms BIGINT);
CREATE VIEW v AS
SELECT count(*) AS n FROM clicks GROUP BY punctuated_window(ms);
