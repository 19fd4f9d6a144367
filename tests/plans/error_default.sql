CREATE STREAM sales (many INT DEFAULT 'one');
