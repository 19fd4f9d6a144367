-- What the rules beside this file need.
CREATE STREAM events (
  ts TIMESTAMP NOT NULL, event_code BIGINT, event_outcome STRING, source_ip STRING, target_ip STRING,
  target_port STRING, user_name STRING, action STRING, client_ip STRING, outcome STRING, user STRING,
  a STRING, `any` STRING, b STRING, code STRING, CommandLine STRING, `date` STRING, empty STRING,
  Folder STRING, group STRING, Image STRING, ip STRING, note STRING, order STRING, Parent STRING,
  port BIGINT, ratio DOUBLE, size BIGINT, sure BOOLEAN, Title STRING, Word STRING, x BIGINT, message STRING,
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS
) WITH (partitions = 1);
