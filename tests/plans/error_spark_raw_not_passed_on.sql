CREATE STREAM sales (price INT);
CREATE STREAM dear AS SELECT * FROM sales WHERE price > 9;
CREATE VIEW v AS SELECT count(_raw:name::string) AS n FROM dear;
