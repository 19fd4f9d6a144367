CREATE STREAM clicks (user STRING) WITH (partitions = 0);
