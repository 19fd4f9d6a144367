CREATE STREAM requests (
  path STRING,
  at TIMESTAMP FORMAT 'dd.MM.yyyy VV'
);
