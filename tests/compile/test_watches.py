"""Watches with one shape, what stays in a shape, and ten thousand watches beside a plain loop."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from headrace.compile.derive import check_stateless
from headrace.compile.passes import compile_project
from headrace.compile.resolve import resolve
from headrace.compile.watches import ShapedWatch, errors_name_watches, expanded, shape_watch
from headrace.core.errors import HeadraceError
from headrace.define.definitions import WatchDefinition
from headrace.define.project import Project
from headrace.define.settings import Settings
from headrace.define.statements import read_statements

PRICES = """
CREATE STREAM prices (item STRING, megapixel INT, price DOUBLE, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WITH (partitions = '2');
CREATE STREAM others (item STRING, price DOUBLE, ts TIMESTAMP,
  WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE STREAM dear AS SELECT * FROM prices WHERE price > 1000;
CREATE STREAM pairs AS SELECT p.item, p.price FROM prices p JOIN others o
  ON p.item = o.item AND p.ts BETWEEN o.ts - INTERVAL 1 HOUR AND o.ts + INTERVAL 1 HOUR;
CREATE VIEW cheapest AS SELECT item, min(price) AS price FROM prices GROUP BY item;
"""


def shape(query: str, end: str = "AFTER 1 MATCH") -> ShapedWatch:
    (watch,) = read_statements(f"CREATE WATCH w AS {query} {end}", "a.sql")
    assert isinstance(watch, WatchDefinition)
    return shape_watch(watch)


def same(*wheres: str) -> bool:
    return len({shape(f"SELECT * FROM prices WHERE {where}").shape for where in wheres}) == 1


def test_a_shape_is_the_select_without_the_constants_of_its_comparisons() -> None:
    made = shape("select  * from prices where megapixel >= 10 and price < 99.5", "WHEN (price < 5)")
    assert made.constants == (10.0, 99.5, 5.0)
    assert made.shape.where == "megapixel >= _constants._c0 AND price < _constants._c1"
    assert made.shape.done == "(price < _constants._c2)"
    assert [bound[:2] for bound in made.shape.bounds] == [(0, "min"), (1, "max")]


def test_constants_do_not_tell_shapes_apart_and_all_else_does() -> None:
    assert same("price < 5", "price < 7.5", "price  <  -3")
    assert same("item = 'a'", "item = 'it''s'")
    assert same("item LIKE 'a%' AND 5 > price", "item LIKE '%' AND 8 > price")
    assert same("price BETWEEN 1 AND 2", "price BETWEEN 3 AND 4")
    assert not same("price < 5", "price <= 5")
    assert not same("item = 'a'", "item = 5")
    assert not same("megapixel % 2 = 0", "megapixel % 3 = 0"), "only what is compared itself"
    assert not same("item IN ('a')", "item IN ('b')")
    assert not same("megapixel = 9007199254740993", "megapixel = 9007199254740995")


def test_the_weakest_bound_is_of_what_every_match_holds() -> None:
    turned = shape("SELECT * FROM prices WHERE 100 > price AND (megapixel > 3 OR item = 'x')")
    assert [bound[:2] for bound in turned.shape.bounds] == [(0, "max")]
    assert shape("SELECT * FROM prices WHERE price < 5 OR price > 9").shape.bounds == ()
    assert shape("SELECT * FROM prices WHERE item = 'a' AND price < 5").shape.bounds == ()
    assert shape("SELECT * FROM prices").shape.bounds == ()


def test_when_speaks_of_the_matched_row() -> None:
    made = shape("SELECT item, price * 2 AS twice FROM prices", "WHEN (twice > 3 AND price > 1)")
    assert made.shape.done == "((price * 2) > _constants._c0 AND price > _constants._c1)"


def checked(project: Project) -> None:
    """What the compiler says of watches without Spark."""
    with errors_name_watches(project):
        found = resolve(expanded(project))
        check_stateless(next(r for name, r in found.items() if name.startswith("_matches_")))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT count(*) AS n FROM prices", "watch 'w' is not stateless: it has AGGREGATE"),
        ("SELECT item FROM prices ORDER BY item", "watch 'w' is not stateless: it has ORDER"),
        ("SELECT * FROM cheapest", "watch 'w' reads the view 'cheapest'"),
        ("SELECT * FROM pairs", "watch 'w' reads joined streams"),
        ("SELECT * FROM price", "watch 'w' reads 'price', which is not defined"),
        (
            "SELECT sum(price) OVER (PARTITION BY item ORDER BY ts) AS s FROM prices",
            "watch 'w' contains a running aggregate",
        ),
    ],
)
def test_each_refusal_has_its_sentence(query: str, sentence: str) -> None:
    text = f"{PRICES} CREATE WATCH w AS {query} AFTER 1 MATCH;"
    project = Project(Path(), Settings("w"), tuple(read_statements(text, "a.sql")))
    with pytest.raises(HeadraceError) as refused:
        checked(project)
    assert refused.value.message == sentence


WATCHES = 10_000


def test_ten_thousand_watches_match_what_a_plain_loop_matches(spark: Any, tmp_path: Path) -> None:
    from headrace.spark.analyse import SparkAnalyser

    text = f"""{PRICES} CREATE WATCH w AS SELECT item, price FROM prices
    WHERE megapixel >= 10 AND price < 100 AFTER 1 MATCH WHEN (price < 50)"""
    project = Project(tmp_path, Settings("w"), tuple(read_statements(text, "a.sql")))
    plan = compile_project(project, SparkAnalyser(spark))
    (made,) = plan.shapes
    view = plan.view(made.view)
    assert view is not None
    rng = random.Random(7)
    constants = [
        (n, rng.randint(0, 20), rng.choice([rng.uniform(0, 10), 50.0]), rng.randint(0, 9))
        for n in range(WATCHES)
    ]
    events = [
        (n, rng.choice([None, rng.randint(0, 20)]), rng.choice([50.0, rng.uniform(0, 100)]))
        for n in range(300)
    ]
    edges = "0 AS _from0, 1000 AS _to0, 100 AS _from1, 200 AS _to1"
    session = spark.newSession()
    session.createDataFrame(constants, "_watch BIGINT, _c0 INT, _c1 DOUBLE, _c2 INT").selectExpr(
        "_watch", "CAST(_c0 AS DOUBLE) _c0", "_c1", "CAST(_c2 AS DOUBLE) _c2", *edges.split(", ")
    ).createOrReplaceTempView(made.tables[0])
    bounds = (
        f"SELECT {min(c[1] for c in constants)}D AS _c0, {max(c[2] for c in constants)}D AS _c1"
    )
    session.sql(bounds).createOrReplaceTempView(made.tables[1])
    hidden = (
        "'x' AS item", "TIMESTAMP'2026-01-01' AS ts", "CAST(n % 2 AS INT) AS _partition",
        "n AS _offset", "current_timestamp() AS _arrived_at", "false AS _late",
        "CAST(0 AS BIGINT) AS _lateness", "megapixel", "price",
    )  # fmt: skip
    frame = session.createDataFrame(events, "n BIGINT, megapixel INT, price DOUBLE")
    frame.selectExpr(*hidden).createOrReplaceTempView("prices")
    keys = [str(view.outputs[n].key) for n in (1, 4, 5)]
    rows = session.sql(view.partial_sql).select(*keys).collect()
    expected = {
        (n, watch, int(price < end))
        for n, megapixel, price in events
        if n % 2 == 0 or 100 <= n < 200
        for watch, least, below, end in constants
        if megapixel is not None and megapixel >= least and price < below
    }
    assert len(rows) == len(expected) > WATCHES
    assert {tuple(row) for row in rows} == expected
