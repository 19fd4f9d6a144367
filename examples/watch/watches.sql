-- Tell me when a camera of 10 megapixels costs less than 100; three offers are enough.
CREATE WATCH cheap_camera AS
SELECT * FROM prices WHERE megapixel >= 10 AND price < 100
AFTER 3 MATCHES NOTIFY FILE 'watched.ndjson';

-- The same shape, other constants: both are evaluated once.
CREATE WATCH fine_camera AS
SELECT * FROM prices WHERE megapixel >= 20 AND price < 300
AFTER 5 MATCHES NOTIFY FILE 'watched.ndjson';

-- Until the new year; or until one is as good as free.
CREATE WATCH bargain AS
SELECT item, shop, price, ts FROM prices WHERE shop = 'north' AND price < 150
UNTIL '2100-01-01' WHEN (price < 30)
SEVERITY 'high' NOTIFY FILE 'watched.ndjson';
