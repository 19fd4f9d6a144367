CREATE STREAM sales (price INT, before INT GENERATED ALWAYS AS (lag(price) OVER (ORDER BY price)));
