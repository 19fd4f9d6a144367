-- What analysts ask of the views of examples/. Each query has its title above it and ends with a
-- semicolon; an ORDER BY at its end is a total order.

-- shop: the three most visited pages of each hour
SELECT hour.start AS hour, url, hits,
       row_number() OVER (PARTITION BY hour ORDER BY hits DESC, url, section) AS place
FROM visitors
QUALIFY place <= 3
ORDER BY hour, place;

-- shop: the best days of each page, with ties
WITH days AS (
  SELECT url, CAST(hour.start AS DATE) AS day, sum(hits) AS hits FROM visitors GROUP BY 1, 2
), ranked AS (
  SELECT *, dense_rank() OVER (PARTITION BY url ORDER BY hits DESC) AS place FROM days
)
SELECT url, day, hits, place FROM ranked WHERE place <= 2;

-- shop: each page's share of all hits
SELECT url, sum(hits) AS hits, round(100.0 * sum(hits) / sum(sum(hits)) OVER (), 2) AS percent
FROM visitors
GROUP BY url
ORDER BY hits DESC, url;

-- shop: each section's share of its day
SELECT date_trunc('DAY', hour.start) AS day, coalesce(section, 'none') AS section,
       sum(hits) AS hits,
       sum(hits) / sum(sum(hits)) OVER (PARTITION BY date_trunc('DAY', hour.start)) AS share
FROM visitors
GROUP BY date_trunc('DAY', hour.start), coalesce(section, 'none');

-- shop: pages that bring four fifths of the hits
WITH pages AS (SELECT url, sum(hits) AS hits FROM visitors GROUP BY url),
     running AS (
       SELECT url, hits, sum(hits) OVER (ORDER BY hits DESC, url) AS so_far, sum(hits) OVER () AS total
       FROM pages)
SELECT url, hits, CAST(so_far AS DECIMAL(18,2)) / total AS cumulative
FROM running
WHERE so_far - hits < 0.8 * total
ORDER BY cumulative;

-- shop: revenue since the beginning of each month
SELECT minute.start AS minute, channel, revenue,
       sum(revenue) OVER (PARTITION BY channel, trunc(minute.start, 'MM') ORDER BY minute.start
                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS month_to_date
FROM sales;

-- shop: revenue of the seven days before each day
WITH days AS (
  SELECT to_date(minute.start) AS day, sum(revenue) AS revenue FROM sales GROUP BY to_date(minute.start)
)
SELECT day, revenue,
       sum(revenue) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS week,
       avg(revenue) OVER (ORDER BY day ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS smooth
FROM days
ORDER BY day;

-- shop: hits of the last three hours, by time and not by rows
SELECT url, section, hour.start AS at,
       sum(hits) OVER (PARTITION BY url ORDER BY hour.start
                       RANGE BETWEEN INTERVAL '2' HOUR PRECEDING AND CURRENT ROW) AS hits,
       count(*) OVER (PARTITION BY url ORDER BY hour.start
                      RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND CURRENT ROW) AS month,
       max(hits) OVER (PARTITION BY url ORDER BY hour.start
                       RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING) AS near
FROM visitors;

-- shop: revenue of each month beside that of a year before
WITH months AS (
  SELECT CAST(trunc(minute.start, 'month') AS DATE) AS month, sum(revenue) AS revenue,
         sum(payments) AS payments
  FROM sales GROUP BY 1
)
SELECT date_format(m.month, 'MMM yyyy') AS month, m.revenue, y.revenue AS year_before,
       round(100 * (m.revenue - y.revenue) / y.revenue, 1) AS growth
FROM months m LEFT JOIN months y ON y.month = add_months(m.month, -12)
ORDER BY m.month;

-- shop: revenue from month to month by channel
SELECT channel, date_format(minute.start, 'yyyy-MM') AS month, sum(revenue) AS revenue,
       sum(revenue) - lag(sum(revenue)) OVER w AS change,
       try_divide(sum(revenue), lag(sum(revenue), 1) OVER w) - 1 AS growth
FROM sales
GROUP BY channel, date_format(minute.start, 'yyyy-MM')
WINDOW w AS (PARTITION BY channel ORDER BY date_format(minute.start, 'yyyy-MM'));

-- shop: the same quarter of the year before
WITH quarters AS (
  SELECT year(minute.start) AS year, quarter(minute.start) AS quarter, sum(payments) AS payments
  FROM sales GROUP BY year(minute.start), quarter(minute.start)
)
SELECT concat(year, '-Q', quarter) AS quarter, payments,
       lag(payments) OVER (PARTITION BY quarters.quarter ORDER BY year) AS year_before
FROM quarters;

-- shop: percentiles of the time that pages take
SELECT url, percentile(ms, 0.5) AS middle, percentile(ms, 0.95) AS p95, median(ms) AS median,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY ms) AS p90,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY ms DESC) AS p10, min(ms) AS least, max(ms) AS most
FROM visitors
GROUP BY url;

-- shop: hours in quartiles of hits within their section
SELECT section, hour.start AS hour, url, hits,
       ntile(4) OVER (PARTITION BY section ORDER BY hits, hour.start, url) AS quartile,
       percent_rank() OVER (PARTITION BY section ORDER BY hits) AS rank,
       cume_dist() OVER (PARTITION BY section ORDER BY hits) AS below
FROM visitors;

-- shop: a table of channels by month
SELECT date_format(minute.start, 'yyyy-MM') AS month,
       sum(CASE WHEN channel = 'search' THEN revenue ELSE 0 END) AS search,
       sum(CASE WHEN channel = 'social' THEN revenue END) AS social,
       sum(revenue) FILTER (WHERE channel NOT IN ('search', 'social')) AS other,
       count(CASE WHEN channel IS NULL THEN 1 END) AS unknown
FROM sales
GROUP BY 1
ORDER BY 1;

-- shop: hits by hour of the day and day of the week
SELECT hour(hour.start) AS hour,
       sum(if(dayofweek(hour.start) IN (1, 7), hits, 0)) AS weekend,
       sum(if(weekday(hour.start) < 5, hits, 0)) AS weekdays,
       count(DISTINCT date_format(hour.start, 'EEEE')) AS days
FROM visitors
GROUP BY hour(hour.start)
ORDER BY hour;

-- shop: pages by the month in which they were first seen
WITH first_seen AS (
  SELECT url, min(trunc(hour.start, 'MM')) AS cohort FROM visitors WHERE section IS NOT NULL GROUP BY url
)
SELECT f.cohort, CAST(months_between(trunc(v.hour.start, 'MM'), f.cohort) AS INT) AS months_later,
       count(DISTINCT v.url) AS pages, sum(v.hits) AS hits
FROM visitors v JOIN first_seen f ON v.url = f.url
GROUP BY 1, 2
ORDER BY 1, 2;

-- shop: visitors and sales of each hour
WITH paid AS (
  SELECT date_trunc('hour', minute.start) AS hour, sum(payments) AS payments, sum(revenue) AS revenue
  FROM sales GROUP BY 1
), seen AS (SELECT hour.start AS hour, sum(visitors) AS visitors FROM visitors GROUP BY 1)
SELECT coalesce(s.hour, p.hour) AS hour, s.visitors, p.payments,
       p.payments / nullif(s.visitors, 0) AS conversion
FROM seen s FULL OUTER JOIN paid p ON s.hour = p.hour;

-- shop: the busiest pages against their average hour
SELECT b.url, b.hits_total, v.hour.start AS hour, v.hits, v.hits - avg(v.hits) OVER (PARTITION BY b.url) AS above
FROM busiest b JOIN visitors v USING (url)
WHERE v.hits > (SELECT avg(hits) FROM visitors WHERE url = b.url);

-- shop: slow hours, by more than two deviations
SELECT v.url, v.hour.start AS hour, v.ms, (v.ms - t.ms) / t.ms_deviation AS z
FROM visitors v CROSS JOIN totals t
WHERE abs(v.ms - t.ms) > 1.2 * t.ms_deviation;

-- shop: subtotals by section and page
SELECT section, url, grouping(section) AS all_sections, grouping(url) AS all_pages,
       grouping_id() AS level, sum(hits) AS hits
FROM visitors
GROUP BY ROLLUP (section, url);

-- shop: how long history is
SELECT datediff(last, first) AS days, timestampdiff(HOUR, first, last) AS hours,
       timestampdiff(MONTH, first, last) AS months, months_between(last, first) AS months_exactly,
       events / timestampdiff(DAY, first, last) AS events_a_day, extract(YEAR FROM first) AS since
FROM totals;

-- shop: the pages of each section in one text
SELECT section, listagg(DISTINCT url, ', ') WITHIN GROUP (ORDER BY url) AS pages,
       string_agg(url, ' ') WITHIN GROUP (ORDER BY hits DESC, url) AS by_hits
FROM visitors
WHERE hour.start < '2025-02-01'
GROUP BY section;

-- shop: hours in which a page had no sale
SELECT DISTINCT date_trunc('hour', v.hour.start) AS hour
FROM visitors v LEFT ANTI JOIN sales s ON date_trunc('hour', s.minute.start) = v.hour.start
ORDER BY hour;

-- shop: the mean payment, weighted, and the largest
SELECT channel, sum(revenue) / sum(payments) AS mean, max(largest) AS largest,
       max_by(minute.start, weight) AS at
FROM (SELECT *, largest * 1000000 + payments AS weight FROM sales WHERE largest IS NOT NULL)
GROUP BY channel
HAVING sum(payments) > 3;

-- shop: how hits are distributed
SELECT width_bucket(hits, 0, 50, 5) AS bucket, count(*) AS hours, min(hits) AS least, max(hits) AS most,
       concat_ws('..', min(hits), max(hits)) AS shown
FROM visitors
GROUP BY 1
ORDER BY 1 NULLS LAST;

-- shop: days without a gap
WITH days AS (SELECT DISTINCT to_date(minute.start) AS day FROM sales),
     islands AS (SELECT day, date_sub(day, row_number() OVER (ORDER BY day)) AS island FROM days)
SELECT min(day) AS first, max(day) AS last, count(*) AS days
FROM islands
GROUP BY island
ORDER BY first;

-- shop: change of hits beside the hour before, only where there was one
SELECT a.url, a.section, a.hour.start AS hour, a.hits - b.hits AS change
FROM visitors a JOIN visitors b
  ON a.url = b.url AND a.section <=> b.section AND a.hour.start = b.hour.end;

-- calls: the direction of most calls in each hour
SELECT hour.start AS hour, max_by(direction, calls * 100 + ascii(direction)) AS direction, max(calls) AS calls
FROM by_direction
WHERE direction IS NOT NULL AND calls IS NOT NULL
GROUP BY hour.start
ORDER BY hour;

-- calls: share of directions in minutes
SELECT direction, sum(seconds) / 60 AS minutes,
       CAST(100.0 * sum(seconds) / sum(sum(seconds)) OVER () AS DECIMAL(5,2)) AS percent
FROM by_direction
GROUP BY direction
ORDER BY minutes DESC NULLS LAST, direction;

-- calls: running total and share of the day
SELECT direction, hour.start AS hour, calls,
       sum(calls) OVER day_so_far AS so_far,
       calls / sum(calls) OVER whole_day AS share
FROM by_direction
WINDOW whole_day AS (PARTITION BY direction, CAST(hour.start AS DATE)),
       day_so_far AS (PARTITION BY direction, CAST(hour.start AS DATE) ORDER BY hour.start);

-- calls: directions side by side
SELECT hour.start AS hour,
       sum(calls) FILTER (WHERE direction = 'O') AS outgoing,
       sum(calls) FILTER (WHERE direction = 'R') AS roaming,
       sum(calls) FILTER (WHERE direction = 'X') AS transit,
       count_if(direction = '?') AS strange
FROM by_direction
GROUP BY hour
HAVING sum(calls) > 0
ORDER BY hour;

-- calls: week over week
WITH weeks AS (
  SELECT date_trunc('week', hour.start) AS week, direction, sum(calls) AS calls
  FROM by_direction GROUP BY ALL
)
SELECT week, direction, calls, calls - lag(calls, 1, 0) OVER (PARTITION BY direction ORDER BY week) AS change,
       first_value(calls) OVER (PARTITION BY direction ORDER BY week) AS at_first,
       last_value(calls) OVER (PARTITION BY direction ORDER BY week
                               ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS at_last
FROM weeks;

-- calls: week numbers and parts of dates
SELECT extract(WEEK FROM hour.start) AS week, extract(YEAROFWEEK FROM hour.start) AS year,
       date_part('DOW', hour.start) AS day, extract(SECOND FROM hour.end) AS seconds,
       dayname(hour.start) AS name, sum(calls) AS calls
FROM by_direction
GROUP BY 1, 2, 3, 4, 5;

-- calls: what a minute costs on each route
SELECT route, cents, seconds, round(cents / 100.0, 2) AS euros,
       round(60 * cents / nullif(charged_seconds, 0), 2) AS cents_a_minute,
       1 - try_divide(charged_seconds, seconds) AS free
FROM by_route
ORDER BY cents DESC NULLS LAST, route;

-- calls: routes above the median of all
SELECT route, calls, cents,
       CASE WHEN calls >= 2 * m.middle THEN 'busy' WHEN calls >= m.middle THEN 'usual' ELSE 'quiet' END AS kind
FROM by_route CROSS JOIN (SELECT median(calls) AS middle FROM by_route) AS m
WHERE cents IS NOT NULL;

-- calls: routes in two groups, by their name
SELECT split_part(route, '-', 1) AS region, count(*) AS routes, sum(calls) AS calls,
       sum(cents) AS cents, listagg(split_part(route, '-', 2), '/') WITHIN GROUP
         (ORDER BY split_part(route, '-', 2)) AS numbers
FROM by_route
WHERE route RLIKE '^(north|south|abroad)-[0-9]+$'
GROUP BY 1
HAVING count(*) >= 1
ORDER BY region;

-- calls: rules that never decide, and those that decide most
SELECT direction_rule, rule, calls, calls / sum(calls) OVER (PARTITION BY direction_rule) AS share,
       rank() OVER (ORDER BY calls DESC) AS place
FROM by_rule
QUALIFY rank() OVER (PARTITION BY direction_rule ORDER BY calls DESC) = 1;

-- calls: every pair of rules, also those that never met
SELECT d.direction_rule, r.rule, coalesce(b.calls, 0) AS calls
FROM (SELECT DISTINCT direction_rule FROM by_rule WHERE direction_rule IS NOT NULL) d
CROSS JOIN (SELECT DISTINCT rule FROM by_rule WHERE rule IS NOT NULL) r
LEFT JOIN by_rule b ON b.direction_rule = d.direction_rule AND b.rule = r.rule
ORDER BY d.direction_rule, r.rule;

-- calls: subtotals of rules in every way
SELECT coalesce(direction_rule, if(grouping(direction_rule) = 1, 'all', 'unknown')) AS direction_rule,
       CASE WHEN grouping(rule) = 1 THEN 'all' ELSE rule END AS rule,
       sum(calls) AS calls, grouping_id(direction_rule, rule) AS level
FROM by_rule
GROUP BY CUBE (direction_rule, rule);

-- calls: a rule table of what rules and routes have in common
SELECT 'route' AS what, route AS name, calls FROM by_route WHERE calls > 100
UNION ALL
SELECT 'rule', rule, sum(calls) FROM by_rule GROUP BY rule
ORDER BY what, calls DESC NULLS LAST, name;

-- calls: hours in which two directions had as many calls
SELECT a.hour.start AS hour, a.direction AS one, b.direction AS other, a.calls
FROM by_direction a JOIN by_direction b ON a.hour = b.hour AND a.calls = b.calls AND a.direction < b.direction
ORDER BY hour, one, other;

-- calls: is a longer call rarer?
SELECT corr(calls, seconds) AS correlation, covar_samp(calls, seconds) AS together,
       stddev(seconds) AS deviation, var_pop(calls) AS variance, count(calls, seconds) AS pairs
FROM by_direction;

-- calls: hours by size, in small numbers
SELECT CAST(least(calls, 100) AS TINYINT) AS small, CAST(sum(seconds) AS FLOAT) AS seconds,
       CAST(count(*) AS SMALLINT) AS hours, sum(CAST(calls AS SMALLINT)) AS calls,
       avg(CAST(calls AS FLOAT)) AS mean, max(CAST(seconds AS FLOAT)) / 2 AS half
FROM by_direction
GROUP BY CAST(least(calls, 100) AS TINYINT);

-- calls: hours and shop visits at the same time
SELECT hour.start AS hour, c.direction, c.calls, v.url, v.hits
FROM by_direction c JOIN visitors v USING (hour)
WHERE v.hits > 30;

-- calls: what the views of calls and of alerts share
SELECT * FROM (SELECT hour, sum(calls) AS calls FROM by_direction GROUP BY hour)
NATURAL JOIN (SELECT hour, sum(alerts) AS alerts FROM alerts_by_hour GROUP BY hour);

-- intrusion: the noisiest rule of each severity
SELECT severity, rule, alerts FROM (
  SELECT severity, rule, sum(alerts) AS alerts,
         rank() OVER (PARTITION BY severity ORDER BY sum(alerts) DESC) AS place
  FROM alerts_by_hour GROUP BY severity, rule)
WHERE place = 1
ORDER BY severity, rule;

-- intrusion: alerts by severity, gravest first
SELECT severity, sum(alerts) AS alerts, count(DISTINCT rule) AS rules, count(DISTINCT hour) AS hours
FROM alerts_by_hour
GROUP BY severity
ORDER BY CASE severity WHEN 'critical' THEN 1 WHEN 'high' THEN 2 WHEN 'medium' THEN 3 ELSE 4 END, severity;

-- intrusion: alerts beside the same hour of the day before
SELECT a.rule, a.hour.start AS hour, a.alerts, b.alerts AS day_before
FROM alerts_by_hour a LEFT JOIN alerts_by_hour b
  ON b.rule = a.rule AND b.severity = a.severity AND b.hour.start = a.hour.start - INTERVAL 1 DAY;

-- intrusion: days since the alert before
SELECT rule, severity, hour.start AS hour,
       timestampdiff(HOUR, lag(hour.start) OVER (PARTITION BY rule, severity ORDER BY hour.start), hour.start)
         AS hours_since
FROM alerts_by_hour;

-- intrusion: bursts of alerts
WITH marked AS (
  SELECT rule, severity, hour.start AS at, alerts,
         CASE WHEN hour.start > lag(hour.end) OVER (PARTITION BY rule, severity ORDER BY hour.start)
              THEN 1 ELSE 0 END AS new
  FROM alerts_by_hour
), numbered AS (
  SELECT *, sum(new) OVER (PARTITION BY rule, severity ORDER BY at) AS burst FROM marked
)
SELECT rule, severity, burst, min(at) AS began, max(at) AS ended, sum(alerts) AS alerts
FROM numbered
GROUP BY rule, severity, burst
HAVING sum(alerts) > 5;

-- intrusion: a table of rules by severity
SELECT rule,
       coalesce(sum(CASE severity WHEN 'critical' THEN alerts END), 0) AS critical,
       coalesce(sum(CASE severity WHEN 'high' THEN alerts END), 0) AS high,
       coalesce(sum(CASE severity WHEN 'low' THEN alerts END), 0) AS low,
       sum(alerts) AS all
FROM alerts_by_hour
GROUP BY rule WITH ROLLUP;

-- intrusion: sources that broke in more than once, newest first
SELECT source_ip, break_ins, most_attempts, last,
       datediff(DATE '2026-03-31', last) AS days_ago,
       row_number() OVER (ORDER BY last DESC, source_ip) AS place
FROM break_ins_by_source
WHERE break_ins > 1
ORDER BY place;

-- intrusion: sources by network
SELECT concat_ws('.', split_part(source_ip, '.', 1), split_part(source_ip, '.', 2)) AS network,
       sum(break_ins) AS break_ins, max(most_attempts) AS most, max(last) AS last,
       bool_or(break_ins > 3) AS grave
FROM break_ins_by_source
GROUP BY 1;

-- intrusion: sources by the month of their last break-in
SELECT date_format(last, 'yyyy-''Q''q') AS quarter, monthname(last) AS month, count(*) AS sources,
       sum(count(*)) OVER (ORDER BY date_format(last, 'yyyy-''Q''q'), monthname(last)) AS so_far
FROM break_ins_by_source
GROUP BY 1, 2;

-- intrusion: minutes with more traffic than ever before
SELECT kind, minute.start AS minute, events FROM (
  SELECT *, max(events) OVER (PARTITION BY kind ORDER BY minute.start
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS most_before
  FROM traffic_by_minute)
WHERE events > most_before OR most_before IS NULL;

-- intrusion: scans in proportion to flows
SELECT f.minute.start AS minute, f.events AS flows, s.events AS scans,
       round(s.events / f.events, 3) AS ratio
FROM traffic_by_minute f JOIN traffic_by_minute s
  ON f.minute = s.minute AND f.kind = 'flow' AND s.kind = 'scan'
ORDER BY minute;

-- intrusion: kinds of traffic in every minute, and how many sources
SELECT date_trunc('hour', minute.start) AS hour, count(DISTINCT kind) AS kinds,
       sum(events) AS events, max(sources) AS sources,
       sum(events) / count(DISTINCT minute) AS events_a_minute
FROM traffic_by_minute
GROUP BY 1;

-- intrusion: hours with alerts but without traffic
SELECT hour.start AS hour FROM alerts_by_hour
EXCEPT
SELECT date_trunc('hour', minute.start) FROM traffic_by_minute;

-- intrusion: alerts after traffic of the same hour
SELECT a.rule, a.severity, a.hour.start AS hour, a.alerts,
       (SELECT sum(t.events) FROM traffic_by_minute t WHERE date_trunc('hour', t.minute.start) = a.hour.start)
         AS events
FROM alerts_by_hour a
WHERE EXISTS (SELECT 1 FROM traffic_by_minute t WHERE date_trunc('hour', t.minute.start) = a.hour.start);

-- intrusion: traffic of a quiet minute
SELECT kind, percentile_cont(0.25) WITHIN GROUP (ORDER BY events) AS quiet,
       percentile(events, 0.75) - percentile(events, 0.25) AS spread,
       count(*) FILTER (WHERE events IS NULL) AS unknown
FROM traffic_by_minute
WHERE kind LIKE '%s%' OR kind IN ('flow')
GROUP BY kind;
