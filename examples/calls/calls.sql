-- Call detail records as an exchange writes them: a type, the route a call came by, the number that was
-- called and how long it took. Out of thin air; like real ones they come late, twice and broken.
CREATE STREAM calls (
  type INT NOT NULL,
  route STRING,
  called STRING,
  ts TIMESTAMP NOT NULL,
  seconds BIGINT,
  WATERMARK ts DELAY OF INTERVAL 10 MINUTES
) WITH (
  source = 'generator', key = 'route', id = 'event_id',
  rate = '200', out_of_order = '0.05', late_by = '30 minutes', duplicates = '0.02', malformed = '0.01',
  type.values = '1,0,3,5,15,2,7,9',
  route.values = 'north-1,south-1,abroad-1,north-2,transit-1,lab-1,old-9',
  called.values = '0301234567,0800111222,0044207946,0897654321,110,0900555123'
);

-- What is known of a route. old-9 is not in it: its calls are of an unknown route.
CREATE TABLE routes (route STRING, kind STRING, zone STRING, cents_a_minute INT)
  USING csv LOCATION 'lookups/routes.csv';

-- Which way a call went. The first rule that is true decides; `direction_rule` says which
-- one that was.
CREATE RULES directions ON calls c
  LEFT JOIN routes r ON c.route = r.route
  FIRST MATCH AS direction_rule
  RULE test_call WHEN r.kind = 'test'                      THEN SET direction = 'T', billable = false
  RULE outgoing  WHEN c.type IN (1, 3, 5, 15)              THEN SET direction = 'O', zone = r.zone, billable = true
  RULE roaming   WHEN c.type = 0 AND r.kind = 'incoming'   THEN SET direction = 'R', zone = r.zone, billable = true
  RULE transit   WHEN r.kind = 'transit'                   THEN SET direction = 'X', zone = r.zone, billable = true
  RULE no_route  WHEN r.route IS NULL                      THEN SET direction = '?', billable = false
  ELSE SET direction = '?', billable = true;

-- What a call costs, by a table that the billing desk keeps in a spreadsheet.
CREATE RULES charges ON directions d LEFT JOIN routes r ON d.route = r.route FROM 'rules/charges.csv';

CREATE VIEW by_direction AS
SELECT direction, window(ts, '1 hour') AS hour, count(*) AS calls, sum(seconds) AS seconds
FROM directions GROUP BY direction, window(ts, '1 hour');

CREATE VIEW by_route AS
SELECT route, count(*) AS calls, sum(seconds) AS seconds, sum(charged_seconds) AS charged_seconds,
       sum(cents) AS cents
FROM charges GROUP BY route;

-- How often each pair of rules decided: a rule that is never there is dead or mistaken.
CREATE VIEW by_rule AS
SELECT direction_rule, rule, count(*) AS calls FROM charges GROUP BY direction_rule, rule;
