"""Kept rows are a dictionary that remembers every version of itself."""

from __future__ import annotations

import pyarrow as pa
import pytest
from chance import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.event import KEY
from headrace.serving import cached_rows
from headrace.serving.cached_rows import CachedRows

KEYS = st.text(alphabet='ab["é\U0001f600', max_size=2)
COMMITS = st.lists(st.dictionaries(KEYS, st.none() | st.integers(0, 9), max_size=4), max_size=12)


def table(rows: dict[str, int]) -> pa.Table:
    keys, values = pa.array(list(rows), pa.string()), pa.array(list(rows.values()), pa.int64())
    return pa.table({"o0": values, KEY: keys})


def as_dict(found: pa.Table) -> dict[str, int]:
    rows = found.to_pylist()
    assert len({row[KEY] for row in rows}) == len(rows)
    return {row[KEY]: row["o0"] for row in rows}


@settings(max_examples=examples(200))
@given(first=st.dictionaries(KEYS, st.integers(0, 9)), commits=COMMITS, few=st.integers(1, 20))
def test_each_commit_has_its_own_rows(
    first: dict[str, int], commits: list[dict[str, int | None]], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cached_rows, "RECENT_MIN", few)  # so that the base is made again sometimes
        expected, versions = dict(first), [(dict(first), CachedRows.of(table(first)))]
        for commit in commits:
            expected = {k: v for k, v in (expected | commit).items() if v is not None}
            rows = table({key: value for key, value in commit.items() if value is not None})
            versions.append((expected, versions[-1][1].changed(commit.keys(), rows)))
    for known, kept in versions:
        assert as_dict(kept.whole) == known
        for key in {*known, "", "a", "b[", *(key for commit in commits for key in commit)}:
            assert as_dict(kept.find(key)) == ({key: known[key]} if key in known else {})


def test_a_key_that_changes_with_every_commit_leaves_no_old_rows_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cached_rows, "RECENT_MIN", 20)
    kept = CachedRows.of(table({"a": 0, "b": 7}))
    for value in range(100):
        kept = kept.changed(["a"], table({"a": value}))
        assert kept.count <= 2 + 20
        assert as_dict(kept.whole) == {"a": value, "b": 7}


def test_rows_of_many_small_commits_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_rows, "CHUNKS_MAX", 3)
    kept = CachedRows.of(table({"a": 0}))
    for value in range(20):
        kept = kept.changed([f"k{value}"], table({f"k{value}": value}))
        assert kept.recent.column(KEY).num_chunks <= 3
    assert len(as_dict(kept.whole)) == 21
