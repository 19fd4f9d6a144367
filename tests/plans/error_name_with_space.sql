CREATE STREAM `my clicks` (user STRING);
