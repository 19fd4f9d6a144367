"""Each kind of change to what is deployed: new, rebuild, reread, removed, unchanged; and what the
history of a stream allows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.core.errors import BadDefinition, NotFound, NotReady, UnsupportedFormat
from headrace.core.position import Position
from headrace.core.version import __version__
from headrace.serving.catalog import changes_of, check_histories

from .bench import CLICKS, PLAN, STREAM, VIEWS, Bench, definitions, plan_of
from .databases import table_names
from .marks import on_every_database

pytestmark = on_every_database

FILTERED = VIEWS | {"hits": VIEWS["hits"].replace("FROM clicks", "FROM clicks WHERE ms > 5")}
RENAMED = VIEWS | {"hits": VIEWS["hits"].replace("AS slowest", "AS worst")}
OTHER_READ = VIEWS | {"pages": "SELECT page, max(slowest) AS worst FROM hits GROUP BY page"}
NO_LONGER_KEPT = VIEWS | {"users": VIEWS["pages"]}
FEWER = {name: text for name, text in VIEWS.items() if name not in {"users", "pages"}}
CHANGES = [
    ("the same text", VIEWS, {}),
    ("the same in other words", VIEWS | {"total": VIEWS["total"].lower()}, {}),
    ("a filter", FILTERED, {"hits": "rebuild"}),
    ("a column's name", RENAMED, {"hits": "reread"}),
    ("a view over a view", OTHER_READ, {"pages": "reread"}),
    ("a kept view that is read", NO_LONGER_KEPT, {"users": "reread"}),
    ("a read view that is kept", VIEWS | {"pages": VIEWS["total"]}, {"pages": "new"}),
    ("one more", VIEWS | {"more": VIEWS["total"]}, {"more": "new"}),
    ("fewer", FEWER, {"users": "removed", "pages": "removed"}),
]


@pytest.fixture
def live(bench: Bench) -> Bench:
    """Every view has a generation and some rows of speed."""
    bench.send(*CLICKS[:4])
    bench.build()
    bench.send(*CLICKS[4:6])
    return bench


def _deploy(bench: Bench, views: dict[str, str], stream: str = STREAM) -> dict[str, str]:
    plan = plan_of(definitions(views, stream))
    return {change.name: change.what for change in bench.store.deploy(plan)}


def _tables(bench: Bench) -> set[str]:
    with bench.store.read() as db:
        return table_names(db)


@pytest.mark.parametrize(
    ("views", "changed"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_deploying_says_what_changes_and_planning_says_the_same(
    live: Bench, views: dict[str, str], changed: dict[str, str]
) -> None:
    planned = {c.name: c.what for c in changes_of(PLAN, plan_of(definitions(views)))}
    found = _deploy(live, views)
    assert {name: what for name, what in found.items() if what != "unchanged"} == changed
    assert planned == found
    assert live.store.deployed() == plan_of(definitions(views))


def test_everything_is_new_in_an_empty_store(bench: Bench) -> None:
    assert {change.what for change in bench.changes} == {"new"}
    assert {change.what for change in changes_of(None, PLAN)} == {"new"}


def test_a_changed_view_is_built_beside_the_live_one(live: Bench) -> None:
    before = live.rows("hits")
    _deploy(live, FILTERED)
    states = [v.state for v in live.store.versions("clicks") if v.name == "hits"]
    assert sorted(states) == ["building", "live"]
    assert live.rows("hits") == before
    # Both versions are kept by epochs; the live one answers on.
    live.send(*CLICKS[6:])
    assert sum(row["n"] for row in live.rows("hits")) == 8
    live.build()
    assert [v.state for v in live.store.versions("clicks") if v.name == "hits"] == ["live"]


def test_the_old_version_leaves_nothing_behind(live: Bench) -> None:
    before = _tables(live)
    _deploy(live, FILTERED)
    live.build()
    _deploy(live, VIEWS)
    live.build()
    assert _tables(live) == before


def test_a_new_version_begins_where_speed_is_and_in_a_group_of_its_own(live: Bench) -> None:
    _deploy(live, FILTERED)
    building = next(v for v in live.store.versions("clicks") if v.state == "building")
    assert building.since == live.store.stream("clicks").position == Position((3, 3))
    assert live.store.closed_groups("clicks")[-1].reached.position == building.since


def test_going_back_before_the_build_drops_the_unfinished_version(live: Bench) -> None:
    before = _tables(live)
    assert _deploy(live, FILTERED)["hits"] == "rebuild"
    assert _deploy(live, VIEWS)["hits"] == "unchanged"
    assert [v.state for v in live.store.versions("clicks") if v.name == "hits"] == ["live"]
    assert _tables(live) == before


def test_a_second_change_replaces_the_first_that_was_not_built(live: Bench) -> None:
    _deploy(live, FILTERED)
    again = VIEWS | {"hits": FILTERED["hits"].replace("ms > 5", "ms > 50")}
    assert _deploy(live, again)["hits"] == "rebuild"
    states = [v.state for v in live.store.versions("clicks") if v.name == "hits"]
    assert sorted(states) == ["building", "live"]


def test_a_view_that_is_read_differently_answers_differently_at_once(live: Bench) -> None:
    _deploy(live, RENAMED)
    assert {tuple(row) for row in live.rows("hits")} == {("page", "minute", "n", "worst")}


def test_a_removed_view_is_gone_with_its_tables(live: Bench) -> None:
    users = next(v for v in live.store.versions("clicks") if v.name == "users")
    live.stage(users, True, [])  # a build that crashed before its promotion
    _deploy(live, FEWER)
    with pytest.raises(NotFound, match="there is no view 'users'"):
        live.rows("users")
    assert not [name for name in _tables(live) if "users" in name or "pages" in name]


def test_a_view_that_is_no_longer_kept_is_gone_with_its_tables(live: Bench) -> None:
    _deploy(live, NO_LONGER_KEPT)
    assert live.rows("users") == live.rows("pages")
    assert "users" not in {version.name for version in live.store.versions("clicks")}
    assert not [name for name in _tables(live) if "users" in name]


def test_a_new_view_is_not_ready_before_its_first_generation(bench: Bench) -> None:
    bench.send(*CLICKS)
    with pytest.raises(NotReady) as caught:
        bench.rows("total")
    assert caught.value.message == "view 'total' is being built for the first time"
    with pytest.raises(NotReady):
        bench.rows("pages")


@pytest.mark.parametrize(
    "stream",
    [
        STREAM.replace("ms BIGINT", "ms STRING"),
        STREAM.replace("ms BIGINT", "ms BIGINT NOT NULL"),
        STREAM.replace("ms BIGINT, ", ""),
        STREAM.replace("ms BIGINT", "ms BIGINT GENERATED ALWAYS AS (length(page))"),
        STREAM.replace("ms BIGINT", "milliseconds BIGINT, ms2 BIGINT"),
        STREAM.replace("ms BIGINT", "ms BIGINT, more STRING NOT NULL"),
        STREAM.replace("'2'", "'3'"),
        STREAM.replace("WITH (", "WITH (format = 'csv', "),
        STREAM.replace("10 SECONDS", "20 SECONDS"),
        STREAM.replace("WITH (", "WITH (watermark.ahead = '1 minute', "),
    ],
)
def test_a_stream_cannot_change_what_its_history_means(live: Bench, stream: str) -> None:
    views = {"total": "SELECT count(*) AS n FROM clicks"}
    state, versions = live.store.stream("clicks"), live.store.versions("clicks")
    with pytest.raises(BadDefinition) as caught:
        _deploy(live, views, stream)
    assert caught.value.message == (
        "the new definition of stream 'clicks' is incompatible with its stored events"
    )
    assert (live.store.stream("clicks"), live.store.versions("clicks")) == (state, versions)
    assert live.store.deployed() == PLAN
    with pytest.raises(BadDefinition):
        check_histories(PLAN, plan_of(definitions(views, stream)))


def test_computed_columns_are_no_part_of_a_streams_history(live: Bench) -> None:
    computed = STREAM.replace("ms BIGINT", "ms BIGINT, twice {} GENERATED ALWAYS AS ({})")
    for said in (computed.format("BIGINT", "2 * ms"), computed.format("STRING", "page"), STREAM):
        assert set(_deploy(live, VIEWS, said).values()) == {"unchanged"}
        check_histories(live.store.deployed(), plan_of(definitions(VIEWS, said)))


def test_a_stream_may_get_a_column_that_may_be_null(live: Bench) -> None:
    changed = _deploy(live, VIEWS, STREAM.replace("ms BIGINT", "ms BIGINT, referrer STRING"))
    assert set(changed) == set(VIEWS)
    state = live.store.stream("clicks")
    assert "referrer" in state.plan.streams[0].schema.names
    assert state.position == Position((3, 3))


def test_a_stream_may_wait_for_its_partitions_for_another_time(live: Bench) -> None:
    changed = _deploy(live, VIEWS, STREAM.replace("WITH (", "WITH (watermark.idle = '5 s', "))
    assert set(changed.values()) == {"unchanged"}
    assert live.store.stream("clicks").plan.streams[0].idle_us == 5_000_000


@pytest.mark.parametrize(
    ("table", "column", "read"),
    [
        ("_meta", "value", lambda bench: bench.store.deployed()),
        ("_views", "plan", lambda bench: bench.store.versions("clicks")),
        ("_streams", "plan", lambda bench: bench.store.stream("clicks")),
        ("_streams", "plan", lambda bench: bench.store.deploy(PLAN)),
    ],
)
def test_a_plan_of_another_form_is_refused(
    live: Bench, table: str, column: str, read: Callable[[Bench], object]
) -> None:
    with live.store.write() as db:
        db.execute(f"UPDATE {table} SET {column} = replace({column}, '\"clicks\"', '[\"clicks\"]')")
    with pytest.raises(UnsupportedFormat) as caught:
        read(live)
    assert caught.value.message.startswith(
        f"the store contains JSON that Headrace {__version__} cannot read: Expected `str`, got `ar"
    )
    assert caught.value.detail == "another version of Headrace wrote it; nothing was changed."
    assert (caught.value.hint or "").startswith("use the Headrace that wrote it; or move it away")
