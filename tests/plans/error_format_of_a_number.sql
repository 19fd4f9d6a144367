CREATE STREAM beats (at BIGINT FORMAT 'epoch_ms');
