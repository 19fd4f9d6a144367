CREATE TABLE prices (price INT, twice INT GENERATED ALWAYS AS (2 * price)) USING csv LOCATION 'p.csv';
