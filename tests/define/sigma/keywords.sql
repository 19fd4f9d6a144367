-- Made by `headrace sigma` from keywords.yml.
-- It needs a stream events with:
--   ts TIMESTAMP, its event time, with a WATERMARK
--   message STRING

-- Words in a message (keywords.yml:1)
CREATE RULE words_in_a_message AS
SELECT * FROM events
WHERE lower(message) LIKE '%mimikatz%'
  OR lower(message) LIKE '%sekurlsa%logon%'
  OR (lower(message) LIKE '%lsass%' AND lower(message) LIKE '%dump%')
SEVERITY 'high';
