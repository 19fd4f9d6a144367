"""The audit: silent while all is well, and loud at each kind of defect.

DuckDB reads the same events up to the same position, partly from the master and partly from the
log. The events are random (the seed is in the test's name); the views have every aggregate and
every form that a definition can have.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from chance import PROVE, drawn
from engines import ARRIVAL_US, Parts, compile_sql
from tampered import change_rows

from headrace.audit.oracle import audit_view
from headrace.audit.row_trace import open_trace, read_row
from headrace.audit.why import explain_row
from headrace.compile.plan import WINDOW, ViewPlan
from headrace.core.aggregate import AGGREGATES
from headrace.core.time import iso
from headrace.define.functions import MARK, FunctionDefinition, function
from headrace.serving.runs import Layer
from headrace.serving.store import AuditResult

# PySpark's advice to whoever registers the function, which is headrace/spark/functions.py and not
# this test.
pytestmark = pytest.mark.filterwarnings("ignore:It is preferred to specify type hints:UserWarning")
SEEDS = (1, 2, 3, 4) if PROVE else (drawn("oracle").randrange(1_000),)
DEFINITIONS = """
CREATE STREAM sales (shop STRING, ts TIMESTAMP, n BIGINT, i INT, price DOUBLE, ok BOOLEAN, tags
  ARRAY<STRING>,
  worth DECIMAL(18,2) GENERATED ALWAYS AS (price * i),
  large BOOLEAN GENERATED ALWAYS AS (n > 3 AND price < 100),
  third STRING GENERATED ALWAYS AS (_raw:tags[1]::string),
  spoken STRING GENERATED ALWAYS AS (soundex(shop)),
  WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE TABLE shops (shop STRING, town STRING) USING csv LOCATION 'shops.csv';
CREATE TABLE towns (town STRING, people BIGINT) USING json LOCATION 'towns.json';
CREATE TABLE taxes (shop STRING, tax DOUBLE) USING parquet LOCATION 'taxes.parquet';
CREATE STREAM tagged AS SELECT shop, n, tag FROM sales LATERAL VIEW explode(tags) t AS tag;

CREATE VIEW counts AS SELECT shop, count(*) AS c, count(n) AS cn, sum(n) AS sn, sum(i) AS si,
  sum(price) AS sp, avg(n) AS an, avg(i) AS ai, avg(price) AS ap FROM sales GROUP BY shop;
CREATE VIEW extremes AS SELECT shop, min(n) AS a, max(n) AS b, min(price) AS c, max(shop) AS d,
  min(ts) AS e,
  max(ok) AS f, bool_and(ok) AS g, bool_or(ok) AS h, every(ok) AS i, some(ok) AS j FROM sales GROUP
    BY shop;
CREATE VIEW spreads AS SELECT shop, var_samp(i) AS a, var_pop(i) AS b, stddev_samp(price) AS c,
  stddev_pop(price) AS d, stddev(n) AS e, variance(price) AS f, mean(i) AS g FROM sales GROUP BY
    shop;
CREATE VIEW latest AS SELECT shop, max_by(price, ts) AS a, min_by(n, ts) AS b, max_by(n, i) AS c,
  min_by(price, i) FILTER (WHERE ok) AS d FROM sales GROUP BY shop;
CREATE VIEW distincts AS SELECT shop, count(DISTINCT n) AS a, approx_count_distinct(i) AS b,
  count(DISTINCT price) FILTER (WHERE ok) AS c FROM sales GROUP BY shop;
CREATE VIEW whole AS SELECT count(*) AS c, sum(n) FILTER (WHERE ok) AS s, count_if(ok) AS k FROM
  sales;
CREATE VIEW minutes AS SELECT window(ts, '1 minute') AS w, shop, count(*) AS c, sum(i) AS s
  FROM sales GROUP BY window(ts, '1 minute'), shop;
CREATE VIEW edges AS SELECT window.start AS begins, window.end AS ends, count(*) AS c
  FROM sales GROUP BY window(ts, '30 seconds');
CREATE VIEW sliding AS SELECT window(ts, '1 minute', '25 seconds', '-7 seconds') AS w, shop,
  count(*) AS c, sum(i) AS s, max_by(n, ts) AS m, count(DISTINCT n) AS d
  FROM sales GROUP BY window(ts, '1 minute', '25 seconds', '-7 seconds'), shop;
CREATE VIEW sliding_edges AS SELECT window.start AS begins, window.end AS ends, count(*) AS c
  FROM sales WHERE ok GROUP BY window(ts, '30 seconds', '10 seconds');
CREATE VIEW sessions AS SELECT upper(shop) AS name, session_window(ts, '4 seconds') AS w,
  count(*) AS c, sum(i) AS s, var_pop(i) AS v, count(DISTINCT n) AS d
  FROM sales WHERE i > -10 GROUP BY 1, session_window(ts, '4 seconds');
CREATE VIEW session_gaps AS SELECT s.town, session_window.start AS begins,
  session_window.end AS ends, count(*) AS c FROM sales v LEFT JOIN shops s ON v.shop = s.shop
  GROUP BY s.town,
  session_window(v.ts, CASE WHEN v.ok THEN '3 seconds' ELSE concat(v.i, ' seconds') END);
CREATE VIEW session_whole AS SELECT session_window(ts, '2 seconds') AS w, count(*) AS c FROM sales
  GROUP BY session_window(ts, '2 seconds');
CREATE VIEW landmark AS SELECT shop, landmark_window(ts, '2026-01-01 23:58:00') AS w, count(*) AS c,
  landmark_window.end AS e FROM sales GROUP BY shop, landmark_window(ts, '2026-01-01 23:58:00');
CREATE VIEW tags AS SELECT tag, count(*) AS c, sum(n) AS s, max_by(n, n) AS m FROM tagged GROUP BY
  tag;
CREATE VIEW joined AS SELECT s.town, t.people, x.tax, count(*) AS c, sum(v.n) AS n
  FROM sales v LEFT JOIN shops s ON v.shop = s.shop LEFT JOIN towns t ON s.town = t.town
  JOIN taxes x ON x.shop = v.shop GROUP BY s.town, t.people, x.tax;
CREATE VIEW busy AS SELECT shop, count(*) AS c, sum(i) AS s FROM sales GROUP BY shop HAVING
  count(*) > 8 AND s > 0;
CREATE VIEW best AS SELECT shop, sum(i) AS s FROM sales GROUP BY shop ORDER BY s DESC LIMIT 2;
CREATE VIEW called AS SELECT loud(shop) AS shop, sum(twice(i)) AS s FROM sales WHERE twice(i) <> 2
  GROUP BY loud(shop);
CREATE VIEW hidden AS SELECT count(*) AS c FROM sales GROUP BY shop, ok;
CREATE VIEW signs AS SELECT n % 3 AS third, upper(shop) AS name, count(*) AS c, avg(i) * 2 + 1 AS a,
  CASE WHEN sum(i) > 0 THEN 'up' ELSE 'down' END AS way FROM sales WHERE n BETWEEN -100 AND 100
    GROUP BY n % 3, upper(shop);
CREATE VIEW ends AS SELECT shop, first(price) AS a, last(n) AS b, first_value(i) IGNORE NULLS AS c,
  last(ok) FILTER (WHERE i > 0) AS d FROM sales GROUP BY shop;
CREATE VIEW lists AS SELECT shop, collect_list(n, 5) AS a, collect_set(i, 7) AS b,
  collect_list(ts, 3) AS c, collect_set(price) FILTER (WHERE ok) AS d, collect_set(ok) AS e,
  histogram(price, 10, 200, 6) AS f, histogram(i, -5, 5, 3) FILTER (WHERE ok) AS g,
  bitmap_count_distinct(n) AS h FROM sales GROUP BY shop;
CREATE VIEW shapes AS SELECT shop, covar_samp(i, price) AS a, covar_pop(i, price) AS b,
  corr(i, price) AS c, skewness(price) AS d, kurtosis(i) AS e, skewness(i) FILTER (WHERE ok) AS f
  FROM sales GROUP BY shop;
CREATE VIEW sketches AS SELECT shop, percentile_approx(i, 0.5) AS a, median(price) AS b,
  approx_top_k(n, 3) AS c, count_min(shop, 'a') AS d, count(*) AS e FROM sales GROUP BY shop;
CREATE VIEW computed AS SELECT third, large, sum(worth) AS a, count(*) AS b FROM sales
  WHERE worth IS NOT NULL GROUP BY third, large;
CREATE VIEW raws AS SELECT _raw:shop::string AS shop, sum(_raw:i::bigint) AS a,
  max(_raw:tags[0]::string) AS b, count_if(_raw:nothing IS NULL) AS c FROM sales
  GROUP BY _raw:shop::string;
CREATE VIEW spoken AS SELECT spoken, count(*) AS c FROM sales GROUP BY spoken;
CREATE VIEW late AS SELECT _late AS late, count(*) AS c FROM sales GROUP BY _late;
"""
FOREIGN = "spoken"  # DuckDB has no soundex
VIEWS = [line.split()[2] for line in DEFINITIONS.splitlines() if line.startswith("CREATE VIEW")]
VIEWS.remove(FOREIGN)


@function(takes=["STRING"], returns="STRING")
def loud(text: pa.Array) -> pa.Array:
    return pc.utf8_upper(text)


@function(takes=["INT"], returns="INT", kind="pandas")
def twice(number: Any) -> Any:
    return number * 2


FUNCTIONS: tuple[FunctionDefinition, ...] = (getattr(loud, MARK), getattr(twice, MARK))


def events(rng: random.Random, size: int) -> list[bytes]:
    """Events with nulls, ties and late times."""
    return [json.dumps(_event(rng)).encode() for _ in range(size)]


def _event(rng: random.Random) -> dict[str, Any]:
    event = {
        "shop": rng.choice(["a", "b", "ü", "zürich"]),
        "ts": iso(ARRIVAL_US - rng.randrange(0, 200) * 1_000_000),
        "n": rng.choice([rng.randrange(-9, 9), 2**62, -(2**62) - 1]),
        "i": rng.randrange(-20, 40),
        "price": rng.randrange(0, 4_000) / 16,
        "ok": rng.random() < 0.6,
        "tags": [rng.choice(["x", "y", None]) for _ in range(rng.randrange(3))],
    }
    return {name: value for name, value in event.items() if rng.random() > 0.1}


def files(folder: Path) -> dict[str, bytes]:
    pq.write_table(
        pa.table({"shop": ["a", "b", "ü"], "tax": [0.1, 0.2, None]}), folder / "taxes.parquet"
    )
    return {
        "shops.csv": "shop,town\na,Bern\nb,Genf\nb,Basel\nü,\n".encode(),
        "towns.json": b'{"town": "Bern", "people": 134}\n{"town": "Genf"}\n',
    }


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed-{seed}")
def parts(
    spark: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Parts]:
    """A generation, an archived tail that only speed has counted, and one that is only in the
    log."""
    folder, rng = tmp_path_factory.mktemp("audit"), random.Random(request.param)
    compiled = compile_sql(spark, folder, DEFINITIONS, files(folder), FUNCTIONS, partitions=2)
    parts = Parts(compiled, folder / "state")
    for number, size in enumerate((120, 60, 40)):
        parts.intake("sales").accept(events(rng, size))
        if number == 0:
            parts.catch_up()
        elif epoch := parts.epoch("sales"):
            parts.store.commit_epoch(epoch)
        if number == 1:
            parts.archive("sales")
    yield parts
    parts.close()


def audit(parts: Parts, view: str) -> AuditResult:
    compiled = parts.compiled
    return audit_view(parts.store, parts.layout, parts.plan, view, compiled.project, FUNCTIONS)


def test_every_aggregate_is_audited() -> None:
    text = DEFINITIONS.replace("count(DISTINCT", "count_distinct(")
    assert [name for name in AGGREGATES if f"{name}(" not in text] == []


@pytest.mark.parametrize("view", VIEWS)
def test_it_finds_nothing_when_all_is_well(parts: Parts, view: str) -> None:
    found = audit(parts, view)
    assert found.examples == ()
    assert found.differences == 0
    assert found.compared > 0


def _change(parts: Parts, view: str, layer: Layer, sql: str) -> Callable[[], None]:
    plan = parts.plan.view(view)
    assert plan is not None
    return change_rows(parts.store, plan, layer, sql)


# Partials by their place in the plan: counts has p0 count(*), p2 and p3 the halves of sum(n), p5
# sum(price).
TAMPERED = {
    "a count that is one too high": (
        "counts",
        Layer.GENERATION,
        "UPDATE rows SET p0 = p0 + 1 WHERE k0 = 'a'",
        1,
    ),
    "a count of speed that is lost": (
        "counts",
        Layer.SPEED,
        "UPDATE rows SET p0 = 0 WHERE k0 = 'a'",
        1,
    ),
    "a sum that is one too low": (
        "counts",
        Layer.GENERATION,
        "UPDATE rows SET p4 = p4 - 1 WHERE k0 = 'b'",
        1,
    ),
    "a double beyond rounding": (
        "counts",
        Layer.GENERATION,
        "UPDATE rows SET p5 = p5 * 1.0001 WHERE k0 = 'a'",
        1,
    ),
    "a missing row": ("counts", Layer.GENERATION, "DELETE FROM rows WHERE k0 = 'a'", 1),
    "an extra row": (
        "counts",
        Layer.GENERATION,
        "INSERT INTO rows SELECT 'new', 'new', p0, p1, p2, p3, p4, p5, p6, p7, 0 FROM rows LIMIT 1",
        1,
    ),
    "a wrong window": (
        "minutes",
        Layer.SPEED,
        "UPDATE rows SET k0 = k0 + 60000000 WHERE rowid = 0",
        2,
    ),
    "a pane that is lost": ("sliding", Layer.GENERATION, "DELETE FROM rows WHERE rowid = 2", 2),
    "a session that ends too late": (
        "session_whole",
        Layer.GENERATION,
        "UPDATE rows SET k0_end = k0_end + 1",
        1,
    ),
    "a session that is lost": ("sessions", Layer.GENERATION, "DELETE FROM rows WHERE rowid = 2", 1),
    "a lost row without keys": ("whole", Layer.GENERATION, "DELETE FROM rows", 1),
    "a row of a view that shows no key": (
        "hidden",
        Layer.GENERATION,
        "DELETE FROM rows WHERE k0 = 'a' AND k1 = 1",
        1,
    ),
    "an estimate that has lost a sketch": (
        "distincts",
        Layer.GENERATION,
        "UPDATE rows SET p2 = NULL WHERE k0 = 'a'",
        1,
    ),
    "a list that has lost its beginning": (
        "lists",
        Layer.GENERATION,
        "UPDATE rows SET p0 = NULL",
        1,
    ),
    "a set of ids that has lost some": ("lists", Layer.GENERATION, "UPDATE rows SET p18 = NULL", 1),
    "a correlation of fewer pairs": ("shapes", Layer.SPEED, "UPDATE rows SET p0 = NULL", 1),
    "a lost latest value": (
        "latest",
        Layer.GENERATION,
        "UPDATE rows SET p0_0 = -1.0, p0_1 = p0_1 + 900000000 WHERE k0 = 'a'",
        1,
    ),
    "a value that turned NULL": (
        "extremes",
        Layer.GENERATION,
        "UPDATE rows SET p2 = -1.0 WHERE k0 = 'a'",
        1,
    ),
    "a row that HAVING should hide": (
        "busy",
        Layer.GENERATION,
        "UPDATE rows SET p0 = -100 WHERE k0 = 'a'",
        1,
    ),
}


@pytest.mark.parametrize("defect", TAMPERED)
def test_it_finds(parts: Parts, defect: str) -> None:
    view, layer, sql, least = TAMPERED[defect]
    restore = _change(parts, view, layer, sql)
    try:
        found = audit(parts, view)
    finally:
        restore()
    assert found.differences >= least
    assert len(found.examples) >= 1
    assert audit(parts, view).differences == 0


@pytest.mark.parametrize(("factor", "differences"), [(1 + 1e-12, 0), (1 + 1e-7, 1)])
def test_doubles_may_differ_by_rounding_and_no_more(
    parts: Parts, factor: float, differences: int
) -> None:
    sql = f"UPDATE rows SET p5 = p5 * {factor!r} WHERE k0 = 'a'"
    restore = _change(parts, "counts", Layer.GENERATION, sql)
    try:
        assert audit(parts, "counts").differences == differences
    finally:
        restore()


def test_what_cannot_be_compared_is_said(parts: Parts) -> None:
    estimates = "columns not compared, because they are estimates: a, b, c, d"
    assert audit(parts, "sketches").note == estimates
    assert audit(parts, "counts").note == ""
    assert audit(parts, FOREIGN).note == (
        "not compared: DuckDB cannot evaluate it: "
        "Catalog Error: Scalar Function with name soundex does not exist!"
    )


# Rows that do not show all their keys, and sessions, whose rows no event has by itself.
NAMELESS = {"hidden", "edges", "sliding_edges", "sessions", "session_gaps", "session_whole"}


@pytest.mark.parametrize("view", [view for view in VIEWS if view not in NAMELESS])
def test_every_row_is_made_again_of_the_events_that_why_names(parts: Parts, view: str) -> None:
    plan = parts.plan.view(view)
    assert plan is not None
    accepted = sum(parts.store.stream("sales").position.offsets)
    rows = parts.reader.view(view).rows
    for row in random.Random(view).sample(rows, min(4, len(rows))):
        keys, window = _named(plan, row)
        if None in keys.values():
            continue  # a text that is NULL cannot be asked for
        asked = read_row(parts.store, view, {name: str(v) for name, v in keys.items()}, window)
        folder = parts.compiled.project.folder
        with open_trace(asked, parts.plan, parts.layout, folder, FUNCTIONS, 60.0) as traced:
            why = explain_row(traced, 0, 5)
        assert (why.agrees, why.row) == (True, row), why.sentence
        assert why.events + sum(left.events for left in why.left_out) == accepted


def _named(plan: ViewPlan, row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The keys of a row and the start of its window."""
    keys = {out.name: row[out.name] for out in plan.outputs if out.key and out.type != WINDOW}
    windows = [row[out.name] for out in plan.outputs if out.key and out.type == WINDOW]
    return keys, windows[0]["start"] if windows else None
