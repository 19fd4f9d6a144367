-- What two sensors of a network see, out of thin air: one in front of a sign-in, one at a switch. Events come
-- up to 3 seconds out of order, so a delay of 5 seconds is enough. A pattern waits for the slowest partition,
-- until that is idle; one alone waits for nobody.
CREATE STREAM sign_ins (
  source_ip STRING NOT NULL,
  user STRING,
  outcome STRING NOT NULL,
  ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 5 SECONDS
) WITH (
  source = 'generator', key = 'source_ip', id = 'event_id', partitions = 1,
  rate = '4', out_of_order = '0.05', late_by = '3 seconds', duplicates = '0.01', malformed = '0.01',
  source_ip.values = '198.51.100.7,203.0.113.9,198.51.100.23,203.0.113.40,192.0.2.66,192.0.2.8',
  user.values = 'root,admin,ada,grace,alan,edsger',
  outcome.values = 'fail,fail,fail,fail,fail,fail,fail,fail,fail,fail,fail,fail,ok'
);

CREATE STREAM traffic (
  source_ip STRING NOT NULL,
  destination_ip STRING,
  kind STRING NOT NULL,
  name STRING,
  ts TIMESTAMP NOT NULL,
  WATERMARK ts DELAY OF INTERVAL 5 SECONDS
) WITH (
  source = 'generator', key = 'source_ip', id = 'event_id', partitions = 1,
  rate = '5', out_of_order = '0.05', late_by = '3 seconds', duplicates = '0.01', malformed = '0.01',
  source_ip.values = '198.51.100.7,203.0.113.9,198.51.100.23,203.0.113.40,192.0.2.66,192.0.2.8',
  destination_ip.values = '10.0.0.5,10.0.0.8,10.0.0.9,10.0.1.4,10.0.1.7,10.0.2.2,10.0.2.3,10.0.2.9',
  kind.values = 'flow,brute force,flow,scan,flow,flow,flow,flow,flow,peer to peer',
  name.values = 'syn scan,fin scan,udp sweep,ping sweep,null scan,xmas scan,ack scan,idle scan,banner grab'
);

-- 20 or more tries on one destination within 2 minutes, and more than 5 ways of scanning from one source within
-- 3. Every interval of that length counts, and a threshold that stays reached is told once.
CREATE STREAM brute_forces AS
count(*) >= 20 WITHIN INTERVAL 2 MINUTES PER destination_ip FROM traffic WHERE kind = 'brute force';

CREATE STREAM port_scans AS
count(DISTINCT name) > 5 WITHIN INTERVAL 3 MINUTES PER source_ip FROM traffic WHERE kind = 'scan';

-- 20 failures of one source, one after the other, and then a success, all within 2 minutes.
CREATE STREAM break_ins AS
SELECT * FROM sign_ins MATCH_RECOGNIZE (
  PARTITION BY source_ip ORDER BY ts
  MEASURES first(bad.ts) AS began, good.ts AS ended, count(bad.*) AS attempts, good.user AS user
  PATTERN (bad{20,} good) WITHIN INTERVAL 2 MINUTES
  DEFINE bad AS outcome = 'fail', good AS outcome = 'ok');

-- What is told, and how often: the alerts that were notified come back as a stream.
CREATE STREAM told (
  alert_id STRING NOT NULL, alert_rule STRING NOT NULL, alert_severity STRING NOT NULL,
  alert_event_time TIMESTAMP NOT NULL, source_ip STRING, destination_ip STRING,
  WATERMARK alert_event_time DELAY OF INTERVAL 1 MINUTE
) WITH (id = 'event_id', partitions = 1);

CREATE RULE brute_force AS
SELECT destination_ip, began, ended FROM brute_forces
SEVERITY 'high'
SUPPRESS FOR INTERVAL 5 MINUTES PER destination_ip
NOTIFY FILE 'alerts.ndjson', STREAM told;

CREATE RULE port_scan AS
SELECT source_ip, began, ended FROM port_scans
SEVERITY 'medium'
SUPPRESS FOR INTERVAL 5 MINUTES PER source_ip
NOTIFY FILE 'alerts.ndjson', STREAM told;

CREATE RULE peer_to_peer AS
SELECT source_ip, destination_ip, name, ts FROM traffic WHERE kind = 'peer to peer'
SEVERITY 'low'
SUPPRESS FOR INTERVAL 1 MINUTE PER source_ip
NOTIFY FILE 'alerts.ndjson', STREAM told;

CREATE RULE break_in AS
SELECT source_ip, user, attempts, began, ended FROM break_ins
SEVERITY 'critical'
SUPPRESS FOR INTERVAL 10 MINUTES PER source_ip
NOTIFY FILE 'alerts.ndjson', STREAM told;

CREATE VIEW alerts_by_hour AS
SELECT alert_rule AS rule, alert_severity AS severity, window(alert_event_time, '1 hour') AS hour,
       count(*) AS alerts
FROM told GROUP BY alert_rule, alert_severity, window(alert_event_time, '1 hour');

CREATE VIEW break_ins_by_source AS
SELECT source_ip, count(*) AS break_ins, max(attempts) AS most_attempts, max(ended) AS last
FROM break_ins GROUP BY source_ip;

CREATE VIEW traffic_by_minute AS
SELECT kind, window(ts, '1 minute') AS minute, count(*) AS events, count(DISTINCT source_ip) AS sources
FROM traffic GROUP BY kind, window(ts, '1 minute');
