"""What each column is made of, for each kind of definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.compile.lineage import Lineage, lineage_of, reads_of
from headrace.compile.plan import OutputPlan, Plan, ViewPlan
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements

STREAMS = """
CREATE STREAM clicks (User STRING, url STRING, ts TIMESTAMP, ms BIGINT, tags ARRAY<STRING>,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM payments (buyer STRING, amount DOUBLE, paid TIMESTAMP,
  WATERMARK paid DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM told (rule STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE sections (url STRING, section STRING) USING csv LOCATION 'sections.csv';
"""


def project_of(sql: str) -> Project:
    return Project(Path(), Settings("lineage"), tuple(read_statements(STREAMS + sql, "l.sql")))


def lineage(sql: str) -> Lineage:
    return lineage_of(project_of(sql))


def columns(sql: str, name: str = "v") -> dict[str, list[str]]:
    """Each column of a definition, and what it is made of."""
    return {
        column.column: [f"{source.object}.{source.column}" for source in column.sources]
        for column in lineage(sql).columns
        if column.object == name
    }


VIEWS = {
    "a column is itself": (
        "SELECT url, count(*) AS n FROM clicks GROUP BY url",
        {"url": ["clicks.url"], "n": ["clicks.*"]},
    ),
    "aliases of columns and relations are followed": (
        "SELECT c.url AS page, sum(c.ms) AS total FROM clicks AS c GROUP BY c.url",
        {"page": ["clicks.url"], "total": ["clicks.ms"]},
    ),
    "an expression has all its columns, each once": (
        "SELECT concat(url, User, url) AS both, max(ms + ms) AS most FROM clicks GROUP BY 1",
        {"both": ["clicks.User", "clicks.url"], "most": ["clicks.ms"]},
    ),
    "a window is made of the time": (
        "SELECT window(ts, '1 hour') AS hour, count(*) AS n FROM clicks "
        "GROUP BY window(ts, '1 hour')",
        {"hour": ["clicks.ts"], "n": ["clicks.*"]},
    ),
    "a join has columns of both sides": (
        "SELECT s.section, c.User, count(*) AS n, avg(ms) AS ms "
        "FROM clicks c LEFT JOIN sections s ON c.url = s.url GROUP BY s.section, c.User",
        {
            "section": ["sections.section"],
            "User": ["clicks.User"],
            "n": ["clicks.*", "sections.*"],
            "ms": ["clicks.ms"],
        },
    ),
    "an aggregate of two columns has both": (
        "SELECT max_by(url, ts) AS last, count(DISTINCT User) AS users FROM clicks",
        {"last": ["clicks.ts", "clicks.url"], "users": ["clicks.User"]},
    ),
    "a filter of an aggregate is a part of it": (
        "SELECT count(*) FILTER (WHERE ms > 5) AS slow FROM clicks",
        {"slow": ["clicks.*", "clicks.ms"]},
    ),
    "a case has its conditions too": (
        "SELECT CASE WHEN ms > 5 THEN url ELSE 'fast' END AS k, count(*) AS n FROM clicks "
        "GROUP BY 1",
        {"k": ["clicks.ms", "clicks.url"], "n": ["clicks.*"]},
    ),
    "a constant is made of nothing": (
        "SELECT 'all' AS k, sum(ms) AS total FROM clicks GROUP BY 1",
        {"k": [], "total": ["clicks.ms"]},
    ),
    "WHERE and HAVING make no column": (
        "SELECT url, sum(ms) AS total FROM clicks WHERE User = 'a' GROUP BY url "
        "HAVING count(*) > 1",
        {"url": ["clicks.url"], "total": ["clicks.ms"]},
    ),
    "names are found whatever their case": (
        "SELECT URL, max(MS) AS most FROM Clicks GROUP BY URL",
        {"url": ["clicks.url"], "most": ["clicks.ms"]},
    ),
    "an exploded list is made of the list": (
        "SELECT tag, count(*) AS n FROM clicks LATERAL VIEW explode(tags) t AS tag GROUP BY tag",
        {"tag": ["clicks.tags"], "n": ["clicks.*"]},
    ),
    "hidden columns are not told": (
        "SELECT url, max(_offset) AS newest FROM clicks GROUP BY url",
        {"url": ["clicks.url"], "newest": []},
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view(name: str) -> None:
    select, expected = VIEWS[name]
    found = columns(f"CREATE VIEW v AS {select};")
    assert {column.lower(): sources for column, sources in found.items()} == {
        column.lower(): sources for column, sources in expected.items()
    }


def test_columns_keep_the_order_and_the_spelling_of_the_definition() -> None:
    found = columns(
        "CREATE VIEW v AS SELECT ms AS Zeit, url, count(*) AS N FROM clicks GROUP BY 1, 2;"
    )
    assert list(found) == ["Zeit", "url", "N"]


def test_a_star_is_all_columns_of_its_relation() -> None:
    found = columns("CREATE STREAM v AS SELECT *, ms + 1 AS more FROM clicks;")
    assert found["tags"] == ["clicks.tags"]
    assert list(found) == ["User", "url", "ts", "ms", "tags", "more"]
    one = columns("CREATE STREAM v AS SELECT s.* FROM clicks c JOIN sections s ON c.url = s.url;")
    assert one == {"url": ["sections.url"], "section": ["sections.section"]}


def test_a_column_that_is_another_as_it_is_says_so() -> None:
    select = "SELECT c.*, ms AS same, ms + 1 AS more, upper(url) AS loud FROM clicks c"
    sql = f"CREATE STREAM v AS {select};"
    plain = {column.column for column in lineage(sql).columns if column.plain}
    assert plain == {"User", "url", "ts", "ms", "tags", "same"}


def test_each_step_is_told_by_itself() -> None:
    sql = """
    CREATE STREAM slow AS SELECT url AS page, ms FROM clicks WHERE ms > 5;
    CREATE VIEW v AS SELECT page, max(ms) AS most FROM slow GROUP BY page;
    CREATE VIEW top AS SELECT max(most) AS most FROM v;
    """
    assert columns(sql, "slow") == {"page": ["clicks.url"], "ms": ["clicks.ms"]}
    assert columns(sql) == {"page": ["slow.page"], "most": ["slow.ms"]}
    assert columns(sql, "top") == {"most": ["v.most"]}


def test_a_star_over_a_derived_stream_has_what_that_made() -> None:
    sql = """
    CREATE STREAM slow AS SELECT url AS page, ms FROM clicks;
    CREATE STREAM v AS SELECT * FROM slow;
    """
    assert columns(sql) == {"page": ["slow.page"], "ms": ["slow.ms"]}


def test_a_join_of_streams_has_columns_of_both() -> None:
    found = columns(
        "CREATE VIEW v AS SELECT c.url, sum(p.amount) AS paid FROM clicks c JOIN payments p "
        "ON c.User = p.buyer AND p.paid BETWEEN c.ts AND c.ts + INTERVAL 1 HOUR GROUP BY c.url;"
    )
    assert found == {"url": ["clicks.url"], "paid": ["payments.amount"]}


def test_a_pattern_has_keys_and_measures() -> None:
    found = columns(
        """CREATE STREAM v AS SELECT * FROM clicks MATCH_RECOGNIZE (
          PARTITION BY User ORDER BY ts
          MEASURES first(a.ts) AS began, count(*) AS many, b.url AS page
          PATTERN (a{3,} b) WITHIN INTERVAL 1 MINUTE DEFINE a AS ms > 5, b AS ms < 5);"""
    )
    assert found == {
        "User": ["clicks.User"],
        "began": ["clicks.ts"],
        "many": ["clicks.*"],
        "page": ["clicks.url"],
    }


def test_a_threshold_has_keys_and_times() -> None:
    found = columns(
        "CREATE STREAM v AS count(*) >= 20 WITHIN INTERVAL 2 MINUTES PER User "
        "FROM clicks WHERE ms > 5;"
    )
    assert found == {"User": ["clicks.User"], "began": ["clicks.ts"], "ended": ["clicks.ts"]}


def test_columns_without_a_name_have_the_one_that_the_plan_gives() -> None:
    project = project_of("CREATE VIEW v AS SELECT url, count(*) FROM clicks GROUP BY url;")
    outputs = (OutputPlan("url", "STRING", "k0"), OutputPlan("count(1)", "BIGINT", "p0"))
    plan = Plan("p", (), (), (), (ViewPlan("v", "mergeable", "", outputs),))
    assert [c.column for c in lineage_of(project, plan).columns] == ["url", "count(1)"]


def test_all_that_depends_on_a_name_is_told_the_nearest_first() -> None:
    sql = """
    CREATE STREAM slow AS SELECT url, ms, ts FROM clicks;
    CREATE VIEW v AS SELECT url, max(ms) AS most FROM slow GROUP BY url;
    CREATE VIEW top AS SELECT max(most) AS most FROM v;
    CREATE RULE hot AS SELECT url, ms FROM slow WHERE ms > 9 NOTIFY STREAM told;
    CREATE VIEW told_rules AS SELECT rule, count(*) AS n FROM told GROUP BY rule;
    CREATE SINK out FROM v INTO FILE 'out.jsonl';
    """
    touched = lineage(sql).touched_by
    assert touched["clicks"][0] == "slow"
    assert set(touched["clicks"]) == {"slow", "v", "hot", "top", "out", "told", "told_rules"}
    assert touched["hot"] == ["told", "told_rules"]
    assert touched["top"] == touched["payments"] == touched["sections"] == []
    assert not any(name.startswith("_") for name in touched)


def test_a_watch_depends_on_what_it_reads() -> None:
    sql = "CREATE WATCH slow AS SELECT * FROM clicks WHERE ms > 5 AFTER 3 MATCHES;"
    assert reads_of(project_of(sql))["slow"] == ["clicks"]


def test_a_computed_column_is_made_of_stored_ones_and_raw_of_all() -> None:
    sql = """
    CREATE STREAM sales (price INT, cart STRUCT<qty: INT>,
      total INT GENERATED ALWAYS AS (Price * cart.qty),
      note STRING GENERATED ALWAYS AS (_raw:note::string));
    CREATE VIEW v AS
    SELECT note, sum(total) AS total, max(_raw:x::int) AS x FROM sales GROUP BY note;
    """
    made = {"total": ["sales.cart", "sales.price"], "note": ["sales.*"]}
    assert columns(sql, "sales") == made
    assert columns(sql) == {"note": ["sales.note"], "total": ["sales.total"], "x": ["sales.*"]}
