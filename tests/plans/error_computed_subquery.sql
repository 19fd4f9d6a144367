CREATE STREAM sales (price INT, most INT GENERATED ALWAYS AS ((SELECT max(price) FROM sales)));
