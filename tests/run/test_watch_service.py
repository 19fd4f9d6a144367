"""The watches of a store: what can be added, asked and removed, and what Spark gets to read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from headrace.compile.plan import WatchPlan
from headrace.core.errors import BadDefinition, HeadraceError, NotFound
from headrace.define.definitions import WatchDefinition
from headrace.run.added_definitions import with_watches
from headrace.run.rule_service import AddedRules
from headrace.run.watch_constants import write_constants
from headrace.run.watch_service import LocalWatchService
from headrace.serving import watches
from headrace.serving.watches import WatchCounts
from tests.serving.bench import Click
from tests.serving.rule_bench import rule_plan
from tests.serving.watch_bench import SELECT, WatchBench, watch

ENDLESS = "UNTIL '2100-01-01'"


class WatchDeployer:
    """Keeps what it is given, as a running project does."""

    def __init__(self, bench: WatchBench) -> None:
        self.bench, self.deployed = bench, list[str]()

    def redeploy(
        self, added: AddedRules, who: str, watches: tuple[WatchDefinition, ...] = ()
    ) -> None:
        self.deployed += [watch.name for watch in watches]
        whole = with_watches(self.bench.project, self.bench.store, watches)
        self.bench.plan = rule_plan("".join(f"{w.text};" for w in whole.watches.values()))
        self.bench.store.deploy(self.bench.plan)

    def add_watches(self, plans: Sequence[WatchPlan], who: str) -> None:
        with self.bench.store.write() as db:
            for plan in plans:
                watches.add(db, plan, True, who, self.bench.clock(), None)
        self.bench.begin()

    def become_writer(self) -> None:
        """The bench is the writer."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[WatchBench]:
    made = WatchBench(tmp_path / "serving.db", said=watch("said", 10, "AFTER 9 MATCHES"))
    made.build()
    yield made
    made.close()


@pytest.fixture
def deployer(bench: WatchBench) -> WatchDeployer:
    return WatchDeployer(bench)


@pytest.fixture
def book(bench: WatchBench, deployer: WatchDeployer) -> LocalWatchService:
    return LocalWatchService(bench.project, bench.store, deployer, threading.Lock())


def test_a_watch_of_a_known_shape_deploys_nothing(
    book: LocalWatchService, deployer: WatchDeployer
) -> None:
    book.add(watch("first", 40, ENDLESS), "bob")
    deployer.deployed.clear()
    (added,) = book.add(watch("more", 50, ENDLESS), "bob")
    assert deployer.deployed == []
    assert (added.state, added.kept, added.added_by) == ("active", True, "bob")
    assert added.shape == book.watch("said").shape
    assert [w.name for w in book.watches()] == ["first", "more", "said"]
    book.add(f"CREATE WATCH new AS {SELECT} WHERE user = 'x' {ENDLESS}", "bob")
    book.add(f"CREATE WATCH newer AS {SELECT} WHERE user = 'y' {ENDLESS}", "bob")
    assert deployer.deployed == ["new"]


def test_a_shape_of_the_files_is_compiled_again_for_a_watch_that_is_added(
    book: LocalWatchService, deployer: WatchDeployer
) -> None:
    # What the files may say is not asked of the fence, so it proves nothing for others.
    book.add(watch("more", 50, ENDLESS), "bob")
    assert deployer.deployed == ["more"]
    book.remove("more", "bob")
    book.add(watch("other", 60, ENDLESS), "bob")
    assert deployer.deployed == ["more"]


def test_the_store_keeps_one_text_a_shape_for_the_next_start(
    book: LocalWatchService, bench: WatchBench
) -> None:
    book.add(watch("a", 50, ENDLESS) + watch("b", 60, ENDLESS), "bob")
    whole = with_watches(bench.project, bench.store)
    assert list(whole.watches) == ["said", "a"]


def test_adding_again_is_another_watch(book: LocalWatchService) -> None:
    first = book.add(watch("w", 50, ENDLESS), "bob")[0]
    second = book.add(watch("W", 60, ENDLESS), "cid")[0]
    assert first.number < second.number
    assert [w.text for w in book.watches() if w.kept] == [second.text]


def test_a_watch_that_was_added_can_be_removed(book: LocalWatchService) -> None:
    book.add(watch("w", 50, ENDLESS), "bob")
    assert book.remove("W", "cid").name == "w"
    with pytest.raises(NotFound) as unknown:
        book.watch("w")
    assert unknown.value.message == "there is no watch 'w'"
    with pytest.raises(BadDefinition) as refused:
        book.remove("said", "cid")
    assert refused.value.message == (
        "watch 'said' is defined in the project's files and must be removed there"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CREATE VIEW v AS SELECT 1", "only CREATE WATCH statements are accepted here"),
        (watch("hits", 5, ENDLESS), "duplicate name 'hits': it is defined at bench.sql:4"),
        (
            watch("w", 5, "UNTIL '2020-01-01'"),
            "the end of watch 'w' is in the past: 2020-01-01T00:00:00Z",
        ),
        (
            watch("w", 5, ENDLESS, "NOTIFY STREAM nowhere"),
            "watch 'w' notifies 'nowhere', which is not a declared stream",
        ),
        (
            watch("w", 5, ENDLESS, "NOTIFY CALL nobody"),
            "watch 'w' calls 'nobody', but functions.py has no such action",
        ),
        (
            watch("w", 5, ENDLESS, "NOTIFY 'https://elsewhere.example/'"),
            "watch 'w' notifies host 'elsewhere.example', which is not listed in notify.hosts",
        ),
    ],
)
def test_each_refusal_has_its_sentence_and_changes_nothing(
    text: str, sentence: str, book: LocalWatchService
) -> None:
    with pytest.raises(HeadraceError) as refused:
        book.add(text, "bob")
    assert refused.value.message == sentence
    assert [w.name for w in book.watches()] == ["said"]


def test_spark_reads_a_line_for_each_watch_and_one_of_bounds(
    book: LocalWatchService, bench: WatchBench, tmp_path: Path
) -> None:
    book.add(watch("more", 50, ENDLESS), "bob")
    write_constants(tmp_path, bench.store, bench.plan)
    constants, bounds = (tmp_path / table.location for table in bench.plan.tables)
    rows = [json.loads(line) for line in constants.read_text().splitlines()]
    assert [(row["_watch"], row["_c0"], row["_from0"]) for row in rows] == [
        (1, 10.0, 0), (2, 50.0, 0),
    ]  # fmt: skip
    assert msgspec.json.decode(bounds.read_bytes()) == {"_c0": 10.0}


def test_watches_are_counted_with_their_matches_and_notifications(
    book: LocalWatchService, bench: WatchBench
) -> None:
    book.add(watch("one", 10, "AFTER 1 MATCH"), "bob")
    book.add(watch("gone", 10, ENDLESS), "bob")
    book.remove("gone", "bob")
    bench.send(Click("/a", "ann", 5, 99), Click("/a", "bob", 6, 98))
    bench.look()
    assert book.numbers(["it is full"]) == WatchCounts(1, 1, 3, 4, 0, ["it is full"])


def test_without_watches_there_are_no_numbers(book: LocalWatchService, bench: WatchBench) -> None:
    with bench.store.write() as db:
        watches.deploy_files(db, [], "ann", 1)
    assert book.numbers() is None
