CREATE STREAM sales (price INT) WITH (format = 'csv');
CREATE VIEW v AS SELECT count(_raw:name::string) AS n FROM sales;
