CREATE STREAM sales (
  price INT,
  twice INT GENERATED ALWAYS AS (
    2 *
    pric));
CREATE VIEW v AS SELECT sum(twice) AS n FROM sales;
