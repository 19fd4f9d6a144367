CREATE STREAM clicks (user STRING)
WITH (
  key = 'user',
  Key = 'url'
);
