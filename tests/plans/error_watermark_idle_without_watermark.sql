CREATE STREAM clicks (user STRING, ts TIMESTAMP)
  WITH (watermark.idle = '1 minute');
