CREATE STREAM sales (
  price INT,
  drawn DOUBLE GENERATED ALWAYS AS (price * rand()));
