-- Made by `headrace sigma` from refused.yml.
-- It needs a stream events with:
--   ts TIMESTAMP, its event time, with a WATERMARK
--   b STRING

-- This one is kept (refused.yml:63)
CREATE RULE this_one_is_kept AS
SELECT * FROM events
WHERE lower(b) LIKE '%y%'
SEVERITY 'medium';
