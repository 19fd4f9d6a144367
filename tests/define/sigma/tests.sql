-- Made by `headrace sigma` from tests.yml.
-- It needs a stream events with:
--   ts TIMESTAMP, its event time, with a WATERMARK
--   a STRING
--   `any` STRING, in Sigma any
--   b STRING
--   code STRING
--   CommandLine STRING
--   `date` STRING, in Sigma date
--   empty STRING
--   Folder STRING
--   group STRING
--   Image STRING
--   ip STRING
--   note STRING
--   order STRING
--   Parent STRING
--   port BIGINT
--   ratio DOUBLE
--   size BIGINT
--   sure BOOLEAN
--   Title STRING
--   user STRING
--   Word STRING
--   x BIGINT

-- Every kind of test; it's long (tests.yml:1)
CREATE RULE every_kind_of_test_it_s_long AS
SELECT user, Image, ts FROM events
WHERE ((lower(Image) LIKE '%\\cmd.exe' ESCAPE '!'
          OR lower(Image) LIKE '%\\powershell.exe' ESCAPE '!')
      AND lower(CommandLine) LIKE '%/c %'
      AND CommandLine LIKE '%100!%!_!!%' ESCAPE '!'
      AND lower(CommandLine) LIKE '%it''s%'
      AND lower(Parent) LIKE 'c:\\win%\\sys_.exe' ESCAPE '!'
      AND Title = 'Admin'
      AND lower(Folder) LIKE 'c:\\temp\\%' ESCAPE '!'
      AND lower(Word) = lower('Ärger'))
  OR (((port IN (22, 23) AND size > 1024) OR (ratio <= 0.5 AND CAST(code AS DOUBLE) >= 7))
      AND user RLIKE '^svc-[0-9]{3}\\.$'
      AND group RLIKE '(?i)admins?'
      AND (ip RLIKE '^10[.][0-9]+[.][0-9]+[.][0-9]+$' OR ip RLIKE '^192[.]168[.](4|5|6|7)[.][0-9]+$')
      AND order IS NOT NULL
      AND `date` IS NULL
      AND empty = ''
      AND `any` IS NOT NULL
      AND sure = true
      AND a = b
      AND NOT coalesce(lower(b) = 'c', false)
      AND code = '7'
      AND NOT coalesce(lower(user) = 'root' OR user = '0' OR note IS NULL, false)
      AND note IS NOT NULL)
SEVERITY 'low';

-- Two conditions (tests.yml:33)
CREATE RULE two_conditions AS
SELECT * FROM events
WHERE x = 1;
