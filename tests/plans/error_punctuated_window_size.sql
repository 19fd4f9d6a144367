CREATE STREAM clicks (user STRING, done BOOLEAN);
CREATE VIEW v AS SELECT count(*) AS n FROM clicks GROUP BY punctuated_window(done, 'many');
