CREATE STREAM clicks (user STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)
  WITH (watermark.ahead = 'soon');
