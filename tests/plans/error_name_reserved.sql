CREATE STREAM _clicks (user STRING);
