CREATE STREAM sales (
  prices MAP<INT, DOUBLE>
);
