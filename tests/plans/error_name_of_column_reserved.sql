CREATE STREAM clicks (
  _offset BIGINT
);
