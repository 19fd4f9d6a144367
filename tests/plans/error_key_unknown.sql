CREATE STREAM clicks (user STRING) WITH (key = 'usr');
