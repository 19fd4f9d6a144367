CREATE STREAM clicks (user STRING);
CREATE VIEW ann AS
SELECT count(*) AS n FROM clicks WHERE user = 'ann;
