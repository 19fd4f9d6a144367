SELECT * FROM text.`/etc/passwd`
SELECT * FROM parquet.`/tmp/x`
SELECT * FROM csv.`file:///etc/passwd`
SELECT * FROM `text`.`/etc/passwd`
SELECT * FROM `/etc/passwd`
SELECT * FROM default.clicks
SELECT * FROM spark_catalog.default.clicks
SELECT * FROM secrets
SELECT * FROM clicks WITH (path = '/etc')
SELECT * FROM (SELECT * FROM (SELECT * FROM text.`/etc/passwd`))
WITH clicks AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM clicks
WITH a AS (SELECT 1), b AS (SELECT * FROM secrets) SELECT * FROM a
SELECT (WITH hidden AS (SELECT 1) SELECT 1), x FROM hidden
SELECT (SELECT value FROM text.`/etc/passwd` LIMIT 1)
SELECT * FROM clicks WHERE EXISTS (SELECT 1 FROM text.`/etc/passwd`)
SELECT * FROM clicks WHERE url IN (SELECT value FROM text.`/etc/passwd`)
SELECT * FROM clicks ORDER BY (SELECT max(value) FROM text.`/etc/passwd`)
SELECT CASE WHEN (SELECT count(*) FROM text.`/etc/passwd`) > 1 THEN 1 END
SELECT upper(concat((SELECT max(value) FROM text.`/etc/passwd`), 'x'))
SELECT user FROM clicks GROUP BY user HAVING count(*) > (SELECT count(*) FROM text.`/etc/passwd`)
SELECT * FROM VALUES ((SELECT max(value) FROM text.`/etc/passwd`)) AS t(x)
SELECT 1 UNION ALL SELECT value FROM text.`/etc/passwd`
SELECT * FROM clicks, LATERAL (SELECT * FROM text.`/etc/passwd`)
SELECT sum(ms) OVER w FROM clicks WINDOW w AS (ORDER BY reflect('java.lang.System', 'nanoTime'))
SELECT reflect('java.lang.System', 'getenv', 'HOME')
SELECT java_method('java.lang.Runtime', 'getRuntime')
SELECT try_reflect('java.lang.System', 'getProperty', 'user.home')
SELECT ReFlEcT('java.lang.System', 'nanoTime')
SELECT `reflect`('java.lang.System', 'nanoTime')
SELECT /* x */ reflect /* y */ ('java.lang.System', 'nanoTime')
SELECT system.builtin.reflect('java.lang.System', 'nanoTime')
SELECT transform(array(1), x -> reflect('java.lang.System', 'nanoTime'))
SELECT count(*) FILTER (WHERE reflect('java.lang.System', 'nanoTime') = '1') FROM clicks
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY reflect('java.lang.System', 'nanoTime')) FROM clicks
SELECT * FROM clicks a JOIN clicks b ON reflect('java.lang.System', 'nanoTime') = a.user
SELECT * FROM clicks LATERAL VIEW explode(array(reflect('java.lang.System', 'nanoTime'))) t AS x
SELECT * FROM clicks LATERAL VIEW java_method('java.lang.System', 'nanoTime') t AS x
SELECT * FROM (SELECT user, ms FROM clicks) PIVOT (sum(ms) FOR user IN (reflect('java.lang.System', 'nanoTime') AS a))
SELECT IDENTIFIER('reflect')('java.lang.System', 'nanoTime')
SELECT * FROM IDENTIFIER('text.`/etc/passwd`')
SELECT * FROM IDENTIFIER('sec' || 'rets')
FROM clicks |> SELECT reflect('java.lang.System', 'nanoTime')
FROM clicks |> UNION ALL (SELECT * FROM text.`/etc/passwd`)
SELECT ｒeflect('java.lang.System', 'nanoTime')
SELECT TRANSFORM(user) USING 'cat' AS (x) FROM clicks
FROM clicks MAP user USING 'cat' AS x
SELECT '${env:HOME}'
SELECT ${system:user.home}
SELECT $$ text $$
SELECT * FROM range(1000000000000)
SELECT * FROM clicks, LATERAL range(10)
SELECT * FROM sql_keywords()
SELECT * FROM python_worker_logs()
SELECT sequence(1, 50000000)
SELECT sequence(1, cast('50000000' AS int))
SELECT repeat('x', 500000000)
SELECT repeat('x', ms) FROM clicks
SELECT space(1000000000)
SELECT lpad('x', 1000000000, ' ')
SELECT array_repeat(1, 1000000000)
SELECT round(1.5D, 2000000000)
SELECT format_string('%1000000000d', 1)
SELECT explode(sequence(1, 1000000000))
SELECT input_file_name() FROM clicks
SELECT _metadata.file_path FROM clicks
SELECT clicks.`_METADATA` FROM clicks
SELECT _metadata.* FROM clicks
SELECT current_user()
SELECT current_database(), version()
SELECT raise_error('x')
SELECT assert_true(false)
SELECT from_xml('<a/>', 'a INT')
SELECT xpath('<a/>', '/a')
SELECT aes_encrypt('a', '0000111122223333')
SELECT :parameter
SELECT ?
SELECT * FROM clicks VERSION AS OF 3
SELECT * FROM clicks TIMESTAMP AS OF '2020-01-01'
SELECT * FROM STREAM clicks
SELECT * FROM STREAM(clicks)
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t
SELECT /*+ REPARTITION(100000) */ * FROM clicks
SELECT 1; SELECT 2
SELECT 1; DROP TABLE clicks
SELECT 1 /* ' */; DROP TABLE clicks -- '
SET spark.sql.ansi.enabled = true
SET VAR x = 1
RESET
ADD JAR '/tmp/evil.jar'
ADD FILE '/etc/passwd'
LIST FILES
CREATE TEMPORARY FUNCTION f AS 'java.lang.Object'
CREATE FUNCTION f() RETURNS INT RETURN 1
CREATE TEMPORARY VIEW v AS SELECT 1
CREATE TABLE t (x INT) USING parquet LOCATION '/tmp/t'
CREATE TABLE t AS SELECT 1
CACHE TABLE clicks
CACHE TABLE x AS SELECT 1
UNCACHE TABLE clicks
INSERT OVERWRITE DIRECTORY '/tmp/out' USING parquet SELECT 1
INSERT INTO clicks SELECT * FROM clicks
DELETE FROM clicks
UPDATE clicks SET ms = 1
MERGE INTO clicks USING sections ON true WHEN MATCHED THEN DELETE
TRUNCATE TABLE clicks
DROP VIEW clicks
ALTER VIEW clicks RENAME TO c
LOAD DATA INPATH '/etc/passwd' INTO TABLE clicks
EXECUTE IMMEDIATE 'SELECT 1'
BEGIN SELECT 1; END
BEGIN DECLARE x INT DEFAULT 1; WHILE true DO SET x = x + 1; END WHILE; END
DECLARE x INT DEFAULT 1
EXPLAIN SELECT 1
DESCRIBE clicks
DESCRIBE QUERY SELECT 1
SHOW TABLES
SHOW FUNCTIONS
USE default
USE CATALOG spark_catalog
CALL system.procedure()
REFRESH TABLE clicks
REFRESH '/etc'
ANALYZE TABLE clicks COMPUTE STATISTICS
COMMENT ON TABLE clicks IS 'x'
FROM clicks INSERT OVERWRITE DIRECTORY '/tmp/out' USING csv SELECT *
WITH a AS (SELECT 1) INSERT INTO clicks SELECT * FROM a
