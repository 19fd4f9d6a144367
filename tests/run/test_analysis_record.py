"""A project that has not changed is compiled without Spark, to the same plan; whatever its analysis
depends on, and damage, has it analysed again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest
from serving.bench import DEFINITIONS, HeldAnalyser

from headrace.compile.plan import Plan
from headrace.core.errors import UnknownColumn
from headrace.core.origin import Origin
from headrace.define.project import load_project
from headrace.run import compiling
from headrace.run.analysis_record import AnalysisRecord
from headrace.run.compiling import compile_recorded, compile_with

KINDS = """
CREATE STREAM clicks (page STRING, ms INT, cost DECIMAL(9,2) GENERATED ALWAYS AS (ms * 0.5),
  ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
CREATE TABLE sections (page STRING, section STRING) USING csv LOCATION 'sections.csv';
CREATE VIEW pages AS SELECT s.section, loud(c.page) AS page, sum(cost) AS cost, avg(ms) AS ms
  FROM clicks c JOIN sections s ON c.page = s.page GROUP BY s.section, loud(c.page);
CREATE STREAM numbered AS SELECT page, row_number() OVER (PARTITION BY page ORDER BY ts) AS place
  FROM clicks;
CREATE VIEW places AS SELECT page, max(place) AS hits FROM numbered GROUP BY page;
CREATE RULE slow AS SELECT page, ms FROM clicks WHERE ms > 100;
"""
FUNCTIONS = """
import pyarrow.compute as pc
from headrace import function

@function(takes=["STRING"], returns="STRING")
def loud(text):
    return pc.utf8_upper(text)
"""


class Refusing(HeldAnalyser):
    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        if "missing" in sql:
            raise UnknownColumn("there is no column 'missing'", origin=origin)
        return super().analyse(sql, origin, name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "headrace.toml").write_text('name = "shop"\n')
    (tmp_path / "shop.sql").write_text(DEFINITIONS)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    return tmp_path


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    """Stands for Spark, and for its analyser."""
    monkeypatch.setattr(compiling, "_analyser", lambda spark, functions: spark)
    return Refusing()


def started(folder: Path, spark: Any) -> tuple[Plan, bool]:
    """The plan of a start, and whether Spark was waited for."""
    asked = list[bool]()

    def session() -> Any:
        asked.append(True)
        return spark

    return compile_recorded(session, load_project(folder)), bool(asked)


def test_a_project_that_has_not_changed_is_compiled_without_spark(spark: Any, folder: Path) -> None:
    (folder / "shop.sql").write_text(KINDS)
    (folder / "sections.csv").write_text("page,section\n/a,one\n")
    plan, analysed = started(folder, spark)
    assert analysed
    assert started(folder, spark) == (plan, False)
    assert plan == compile_with(spark, load_project(folder))


def test_a_definition_is_analysed_once(held: Any, folder: Path) -> None:
    first = started(folder, held)
    assert started(folder, held) == (first[0], False)
    assert first == (compile_with(held, load_project(folder)), True)


def test_a_changed_definition_is_analysed(held: Any, folder: Path) -> None:
    before, _ = started(folder, held)
    slower = f"{DEFINITIONS}CREATE VIEW slow AS SELECT max(ms) AS slowest FROM clicks;"
    (folder / "shop.sql").write_text(slower)
    plan, analysed = started(folder, held)
    assert analysed
    assert plan == compile_with(held, load_project(folder)) != before
    (folder / "shop.sql").write_text(slower.replace("max(ms)", "max(missing)"))
    for _ in range(2):
        with pytest.raises(UnknownColumn):
            started(folder, held)
    (folder / "shop.sql").write_text(slower)
    assert started(folder, held) == (plan, False), "an error leaves the record as it was"


def return_a_number(folder: Path, patch: pytest.MonkeyPatch) -> None:
    text = FUNCTIONS.replace('returns="STRING"', 'returns="BIGINT"')
    (folder / "functions.py").write_text(text)


def configure(folder: Path, patch: pytest.MonkeyPatch) -> None:
    conf = "[spark.conf]\n'spark.sql.decimalOperations.allowPrecisionLoss' = 'false'\n"
    (folder / "headrace.toml").write_text(f'name = "shop"\n{conf}')


def upgrade_spark(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pyspark, "__version__", "4.4.0")


def upgrade_headrace(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("headrace.run.analysis_record.__version__", "9.9")


def damage(folder: Path, patch: pytest.MonkeyPatch) -> None:
    path = folder / ".headrace" / "work" / "run" / "analysis"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"string"', b'"strinG"', 1))
    assert path.read_bytes() != whole


def use_another_spark(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("SPARK_HOME", str(folder))


CHANGES = [return_a_number, configure, upgrade_spark, upgrade_headrace, damage, use_another_spark]


@pytest.mark.parametrize("change", CHANGES)
def test_what_an_analysis_depends_on_has_it_done_again(
    held: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None]
) -> None:
    started(folder, held)
    change(folder, monkeypatch)
    assert started(folder, held) == (compile_with(held, load_project(folder)), True)


def test_a_record_that_cannot_be_written_is_no_error(held: Any, folder: Path) -> None:
    path = AnalysisRecord.of(load_project(folder), ()).path
    path.with_suffix(".new").mkdir(parents=True)
    for _ in range(2):
        assert started(folder, held)[1]
