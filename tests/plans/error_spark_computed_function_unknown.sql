CREATE STREAM sales (price INT, twice INT GENERATED ALWAYS AS (doubled(price)));
