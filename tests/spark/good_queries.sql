SELECT user, count(*) AS n FROM clicks GROUP BY user HAVING count(*) > 0 ORDER BY n DESC LIMIT 3 OFFSET 0
SELECT DISTINCT url FROM clicks;
WITH a AS (SELECT * FROM clicks), b(x) AS (SELECT user FROM a) SELECT x FROM b
WITH a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b) SELECT * FROM a
SELECT row_number() OVER w, sum(ms) OVER (PARTITION BY user ORDER BY ms ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM clicks WINDOW w AS (PARTITION BY user ORDER BY ms)
SELECT sum(ms) OVER (ORDER BY ms RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM clicks
SELECT CASE WHEN ms IN (1, 2) THEN 'a' ELSE cast(ms AS STRING) END, ms BETWEEN 1 AND 2, -ms, ms % 2, ms::double FROM clicks
SELECT CASE user WHEN 'ann' THEN 1 END, try_cast(url AS int), url IS NOT NULL, NOT (ms = 1) FROM clicks
SELECT a.user, b.section FROM clicks a LEFT JOIN sections b ON a.url = b.url
SELECT * FROM clicks JOIN sections USING (url)
SELECT * FROM clicks NATURAL JOIN sections
SELECT * FROM clicks a CROSS JOIN sections b
SELECT * FROM clicks LEFT SEMI JOIN sections ON clicks.url = sections.url
SELECT (SELECT max(ms) FROM clicks) AS m, EXISTS (SELECT 1 FROM sections) FROM clicks
SELECT * FROM clicks WHERE url IN (SELECT url FROM sections)
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)
SELECT * FROM VALUES (upper('a')), (lower('B')) AS t(x)
SELECT user, explode(array(1, 2)) AS x FROM clicks
SELECT user, x FROM clicks LATERAL VIEW OUTER explode(split(url, '/')) t AS x
SELECT user, x.col FROM clicks, LATERAL explode(array(1, 2)) x
SELECT user, y FROM clicks, LATERAL (SELECT clicks.ms + 1 AS y)
SELECT transform(array(1, 2), x -> x + 1), aggregate(array(1), 0, (a, x) -> a + x), filter(array(1), x -> x > 0)
SELECT struct(1 AS a).a, array(1)[0], map('a', 1)['a'], named_struct('a', 1)
SELECT count(*) FILTER (WHERE ms > 1), count(DISTINCT user), percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) FROM clicks
SELECT first(ms) IGNORE NULLS, any_value(ms), last(url), max_by(user, ms), listagg(user, ',') FROM clicks
SELECT user, url, count(*), grouping(user) FROM clicks GROUP BY ROLLUP(user, url)
SELECT user, url, count(*) FROM clicks GROUP BY GROUPING SETS ((user), (url), ())
SELECT user, count(*) FROM clicks GROUP BY ALL ORDER BY ALL
SELECT user FROM clicks UNION SELECT url FROM clicks EXCEPT SELECT section FROM sections INTERSECT ALL SELECT url FROM sections
SELECT * FROM (SELECT user, ms FROM clicks) PIVOT (sum(ms) FOR user IN ('ann', 'bob'))
SELECT * FROM (SELECT user, ms, ms AS more FROM clicks) UNPIVOT (v FOR k IN (ms, more))
SELECT * FROM clicks TABLESAMPLE (50 PERCENT)
SELECT /*+ BROADCAST(s) */ * FROM clicks c JOIN sections s ON c.url = s.url
SELECT * EXCEPT (ms) FROM clicks
SELECT clicks.*, date '2020-01-01', timestamp '2020-01-01 00:00:00', interval '1' day, X'AB', 1.5, 1e3, null, true FROM clicks
SELECT current_date, current_timestamp, now(), extract(hour FROM ts), date_trunc('hour', ts), timestampadd(HOUR, 1, ts) FROM clicks
SELECT trim(BOTH 'x' FROM url), substring(url FROM 1 FOR 2), position('a' IN url), overlay(url PLACING 'x' FROM 1) FROM clicks
SELECT * FROM clicks WHERE url RLIKE 'a' OR url ILIKE 'b' OR url LIKE ANY ('a', 'b') OR ms IS DISTINCT FROM 3 OR ms <=> 3
SELECT ms & 1, ms | 1, ms ^ 1, ~ms, ms << 1, ms DIV 2, url || 'x' FROM clicks
SELECT window(ts, '1 hour').start AS hour, count(*) FROM clicks GROUP BY window(ts, '1 hour')
SELECT session_window(ts, '5 minutes') AS s, count(*) FROM clicks GROUP BY session_window(ts, '5 minutes')
SELECT * FROM clicks QUALIFY row_number() OVER (PARTITION BY user ORDER BY ms) = 1
FROM clicks |> WHERE ms > 1 |> AGGREGATE count(*) AS n GROUP BY user |> ORDER BY n
TABLE clicks
SELECT hll_sketch_estimate(hll_sketch_agg(user)), approx_count_distinct(user), approx_percentile(ms, 0.5) FROM clicks
SELECT get_json_object('{"a": 1}', '$.a'), from_json('{"a": 1}', 'a INT').a, to_json(struct(ms)) FROM clicks
SELECT repeat('-', 10), lpad(user, 5, ' '), round(ms / 3, 2), round(ms, -1), sequence(1, 5) FROM clicks
SELECT shout(user) FROM clicks -- a comment; with a semicolon
SELECT ';', "a ; b", '--', '/*', 'it''s', 'it\'s', r'\', /* a /* nested */ ; comment */ 1
SELECT `user`, `url` FROM `clicks`
SELECT 'reflect', 'SELECT TRANSFORM', ms AS reflect FROM clicks
