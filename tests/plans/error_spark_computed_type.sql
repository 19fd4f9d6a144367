CREATE STREAM sales (
  price INT,
  prices INT GENERATED ALWAYS AS (array(price)));
