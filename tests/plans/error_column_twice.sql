CREATE STREAM clicks (user STRING, url STRING, User INT);
