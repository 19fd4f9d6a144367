CREATE STREAM clicks (user STRING);

CREATE VIEW Clicks AS SELECT count(*) AS n FROM clicks;
