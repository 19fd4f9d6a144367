CREATE STREAM sales (price INT, name STRING GENERATED ALWAYS AS (concat('p', price))) WITH (id = 'name');
