CREATE STREAM sales (price INT, twice INT GENERATED ALWAYS AS (2 * (price);
