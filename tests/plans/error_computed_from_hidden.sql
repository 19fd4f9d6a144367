CREATE STREAM sales (price INT, late INT GENERATED ALWAYS AS (if(_late, 1, 0)));
