"""Projects beside what they must give.

`error_*.sql` is refused with the whole text of `error_*.txt`; those named `error_spark_*.sql` are
read by Spark's analyser, all others are refused before it is asked. `plan_*.sql` gives the views of
`plan_*.json`, however it is written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlglot.tokenizer_core import TokenType

from headrace.compile.analyser import Analyser
from headrace.compile.plan import Plan, ViewPlan
from headrace.core.errors import HeadraceError
from headrace.define.dialect import Headrace
from headrace.spark.analyse import SparkAnalyser

from .projects import HERE, Unasked, compile_text

ERRORS = sorted(path.stem for path in HERE.glob("error_*.sql"))
PLANS = sorted(path.stem for path in HERE.glob("plan_*.sql"))
OF_SPARK = [name for name in ERRORS if name.startswith("error_spark_")]


@pytest.fixture(scope="module")
def analyser(spark: Any) -> Analyser:
    return SparkAnalyser(spark)


def test_every_project_has_what_it_must_give_beside_it() -> None:
    given = {path.stem for path in HERE.iterdir() if path.suffix in {".txt", ".json"}}
    assert given == {*ERRORS, *PLANS}
    assert len(ERRORS) >= 50


def refusal(name: str, folder: Path, analyser: Analyser) -> str:
    with pytest.raises(HeadraceError) as caught:
        compile_text(folder, (HERE / f"{name}.sql").read_text("utf-8"), analyser)
    return f"{caught.value}\n"


@pytest.mark.parametrize("name", [name for name in ERRORS if name not in OF_SPARK])
def test_project_is_refused_without_asking_spark(name: str, tmp_path: Path) -> None:
    assert refusal(name, tmp_path, Unasked()) == (HERE / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", OF_SPARK)
def test_project_is_refused_with_its_types_known(
    name: str, tmp_path: Path, analyser: Analyser
) -> None:
    assert refusal(name, tmp_path, analyser) == (HERE / f"{name}.txt").read_text("utf-8")


def said(plan: Plan) -> dict[str, Any]:
    """What a reader of the plan would look at first."""
    return {view.name: _said_of(view) for view in plan.views}


def _said_of(view: ViewPlan) -> dict[str, Any]:
    if view.kind == "read":
        outputs = {out.name: out.type for out in view.outputs}
        return {"reads": list(view.reads), "read_sql": view.read_sql, "outputs": outputs}
    return {
        "stream": view.stream,
        "tables": list(view.tables),
        "map": view.map_sql,
        "partial": view.partial_sql.replace(view.map_sql, "map"),
        "merges": {" ".join(p.columns): p.merge for p in view.partials},
        "counted": [p.counted for p in view.counted],
        "keys": {key.name: key.type for key in view.keys},
        "calls": {call.column: f"{call.type}: {call.finish}" for call in view.calls},
        "outputs": {out.name: f"{out.type}: {out.finish}" for out in view.outputs},
        "estimates": {out.name: out.estimate.when for out in view.outputs if out.estimate},
        "having": view.having,
        "order": list(view.order),
        "limit": view.limit,
    }


@pytest.mark.parametrize("name", PLANS)
def test_project_gives_its_plan(name: str, tmp_path: Path, analyser: Analyser) -> None:
    plan = compile_text(tmp_path, (HERE / f"{name}.sql").read_text("utf-8"), analyser)
    assert said(plan) == json.loads((HERE / f"{name}.json").read_text("utf-8"))


def reformatted(text: str) -> str:
    """The same words, each on a line of its own after a comment, keywords and functions shouted."""
    kept = {TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER}
    words = [
        text[t.start : t.end + 1] if t.token_type in kept else text[t.start : t.end + 1].upper()
        for t in Headrace().tokenize(text)
    ]
    return "/* again; */ " + "\n  -- so\n".join(words)


@pytest.mark.parametrize("name", PLANS)
def test_formatting_changes_no_fingerprint(name: str, tmp_path: Path, analyser: Analyser) -> None:
    text = (HERE / f"{name}.sql").read_text("utf-8")
    assert reformatted(text) != text
    one = compile_text(tmp_path, text, analyser)
    other = compile_text(tmp_path, reformatted(text), analyser)
    assert [v.origin for v in one.views] != [v.origin for v in other.views]
    pairs = [pair for pair in zip(one.views, other.views, strict=True) if pair[0].kind != "read"]
    assert [a.name for a, b in pairs if a.fingerprint != b.fingerprint] == []
    assert [a.name for a, b in pairs if a.recompute != b.recompute] == []
    assert (one.streams, one.tables, one.derived) == (other.streams, other.tables, other.derived)


def test_comment_in_a_view_over_views_changes_no_fingerprint(
    tmp_path: Path, analyser: Analyser
) -> None:
    text = (HERE / "plan_shop.sql").read_text("utf-8")
    commented = text.replace("FROM sections", "FROM sections -- all of them\n")
    assert commented != text
    one, other = (compile_text(tmp_path, t, analyser).views[-1] for t in (text, commented))
    assert one.fingerprint == other.fingerprint


def test_order_of_definitions_changes_no_fingerprint(tmp_path: Path, analyser: Analyser) -> None:
    text = (HERE / "plan_shop.sql").read_text("utf-8")
    statements = [part for part in text.split(";\n") if part.strip()]
    one = compile_text(tmp_path, text, analyser)
    other = compile_text(tmp_path, ";\n".join(reversed(statements)), analyser)
    assert {v.name: v.fingerprint for v in one.views} == {
        v.name: v.fingerprint for v in other.views
    }
