CREATE STREAM clicks ();
