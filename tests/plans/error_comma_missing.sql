CREATE STREAM clicks (user STRING)
WITH (key = 'user' id = 'event_id');
