CREATE STREAM clicks (
  user STRING,
  body BLOB
);
