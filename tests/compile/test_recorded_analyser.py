"""What was analysed once is not analysed again, and what is found is what would be said."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from headrace.compile.recorded_analyser import Answer, RecordedAnalyser
from headrace.core.errors import UnknownColumn
from headrace.core.origin import Origin

HERE = Origin("shop.sql", 3)


@dataclass
class Spark:
    """Says of each query which relations there are, and notes its calls."""

    calls: list[str] = field(default_factory=list)
    relations: dict[str, str] = field(default_factory=dict)

    def relation(self, name: str, ddl: str) -> None:
        self.calls.append(f"relation {name}")
        self.relations[name] = ddl

    def analyse(self, sql: str, origin: Origin, name: str | None = None) -> list[tuple[str, str]]:
        self.calls.append(f"analyse {sql}")
        if "missing" in sql:
            raise UnknownColumn("there is no column 'missing'", origin=origin)
        if name:
            self.relations[name] = sql
        return sorted(self.relations.items())

    def equal(self, sql: str) -> bool:
        self.calls.append(f"equal {sql}")
        return "same" in sql


def run(
    known: dict[str, Answer], *, about: str = "4.3", ddl: str = "page STRING", sql: str = "SELECT 1"
) -> tuple[dict[str, Answer], list[str], list[object]]:
    """The record after a compilation, the calls that it made, and what it was told."""
    spark = Spark()
    analyser = RecordedAnalyser(about, known, lambda: spark)
    analyser.relation("clicks", ddl)
    said = [
        analyser.analyse(sql, HERE),
        analyser.analyse("SELECT page FROM clicks", HERE, "pages"),
        analyser.equal("SELECT same"),
        analyser.analyse("SELECT * FROM pages", HERE),
    ]
    return analyser.answers, spark.calls, said


@pytest.fixture
def known() -> dict[str, Answer]:
    return run({})[0]


def test_what_is_unchanged_is_answered_without_the_analyser(known: dict[str, Answer]) -> None:
    _, asked, fresh = run({})
    answers, calls, said = run(known)
    assert (len(asked), calls) == (5, [])
    assert (said, answers) == (fresh, known)


@pytest.mark.parametrize(
    ("changed", "calls"),
    [
        ({"about": "4.4"}, 5),
        ({"ddl": "page STRING, ms INT"}, 5),
        ({"sql": "SELECT 2"}, 5),  # the relation before it is registered too
    ],
)
def test_an_answer_is_found_only_where_all_that_it_depends_on_is_equal(
    known: dict[str, Answer], changed: dict[str, str], calls: int
) -> None:
    _, made, said = run(known, **changed)
    assert len(made) == calls
    assert said == run({}, **changed)[2]


def test_an_answer_is_not_found_without_a_relation_that_was_there(known: dict[str, Answer]) -> None:
    spark = Spark()
    analyser = RecordedAnalyser("4.3", known, lambda: spark)
    assert analyser.analyse("SELECT 1", HERE) == []
    assert spark.calls == ["analyse SELECT 1"]


def test_an_analyser_that_starts_late_gets_the_relations_of_before(
    known: dict[str, Answer],
) -> None:
    spark = Spark()
    analyser = RecordedAnalyser("4.3", known, lambda: spark)
    analyser.relation("clicks", "page STRING")
    analyser.analyse("SELECT page FROM clicks", HERE, "pages")
    assert spark.calls == []
    assert analyser.analyse("SELECT 3", HERE) == [
        ("clicks", "page STRING"), ("pages", "SELECT page FROM clicks"),
    ]  # fmt: skip
    assert spark.calls == ["relation clicks", "analyse SELECT page FROM clicks", "analyse SELECT 3"]


def test_an_error_is_not_recorded(known: dict[str, Answer]) -> None:
    for _ in range(2):
        spark = Spark()
        analyser = RecordedAnalyser("4.3", known, lambda spark=spark: spark)  # type: ignore[misc]
        analyser.relation("clicks", "page STRING")
        with pytest.raises(UnknownColumn) as refused:
            analyser.analyse("SELECT missing FROM clicks", HERE, "pages")
        assert refused.value.origin == HERE
        assert spark.calls[-1] == "analyse SELECT missing FROM clicks"
        assert len(analyser.answers) == 1
