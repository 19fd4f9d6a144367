CREATE STREAM clicks (user STRING) WITH (format = 'xml');
