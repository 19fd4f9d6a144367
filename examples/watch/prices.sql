-- Offers of cameras, out of thin air.
CREATE STREAM prices (
  item STRING NOT NULL,
  shop STRING NOT NULL,
  megapixel INT NOT NULL,
  price DOUBLE NOT NULL,
  ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE
) WITH (
  source = 'generator', key = 'item', id = 'event_id', rate = '50',
  item.cardinality = '200', shop.values = 'north,south,east,west',
  megapixel.values = '4,6,8,10,12,16,20,24',
  price.values = '24.9,49,99,129,149,199,249,299,349,399,449,499,599,699,799,899,999,1199,1499,1999'
);

CREATE VIEW cheapest AS
SELECT item, count(*) AS offers, min(price) AS price, min_by(shop, price) AS shop
FROM prices GROUP BY item;
