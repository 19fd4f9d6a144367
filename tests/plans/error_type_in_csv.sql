CREATE STREAM sales (
  cart STRUCT<id: STRING, items: ARRAY<INT>>
) WITH (format = 'csv');
