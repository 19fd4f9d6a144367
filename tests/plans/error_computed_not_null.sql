CREATE STREAM sales (
  price INT,
  twice INT NOT NULL GENERATED ALWAYS AS (2 * price));
