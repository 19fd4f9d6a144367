CREATE STREAM sales (
  shop STRING, price DECIMAL(10,2), qty INT, ts TIMESTAMP,
  total DECIMAL(18,2) GENERATED ALWAYS AS (price * qty),
  campaign STRING GENERATED ALWAYS AS (
    coalesce(_raw:utm.campaign::string, 'none')),
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);

CREATE VIEW shops AS SELECT shop, count(*) AS n FROM sales GROUP BY shop;

CREATE VIEW totals AS SELECT s.shop, sum(total) AS total FROM sales s GROUP BY s.shop;

CREATE STREAM campaigns AS SELECT campaign, _raw:more::int AS more FROM sales WHERE total > 0;

CREATE VIEW best AS SELECT campaign, max(more) AS more FROM campaigns GROUP BY campaign;
