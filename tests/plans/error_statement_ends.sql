CREATE STREAM clicks (
  user STRING
