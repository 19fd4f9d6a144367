CREATE STREAM sales (
  price INT,
  twice INT GENERATED ALWAYS AS (2 * price),
  thrice INT GENERATED ALWAYS AS (
    twice + price));
CREATE VIEW v AS SELECT sum(thrice) AS n FROM sales;
