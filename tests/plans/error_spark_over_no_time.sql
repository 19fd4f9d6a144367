CREATE STREAM clicks (user STRING, ts TIMESTAMP, ms BIGINT);
CREATE STREAM smooth AS SELECT user, sum(ms) OVER (PARTITION BY user ORDER BY ts) AS total FROM clicks;
