CREATE STREAM sales (price INT,
  most INT GENERATED ALWAYS AS (
    mode(price)));
