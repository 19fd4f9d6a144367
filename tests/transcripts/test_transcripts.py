"""Every transcript comes true on every engine: wherever the log is cut, and whenever a process is
killed.

`reference` is the interpreter that says what is right; the others are the product (see
tests/engines.py). In each run of the tests a quarter of the stories are drawn, and a fifth of the
two kinds that take longest. Each is cut at one drawn place and killed at another, and then batch
must find what speed had served. `make prove` takes all stories, and cuts and kills at every place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chance import PROVE, drawn
from engines import (
    BatchEngine,
    BehindEngine,
    Compiled,
    CrashEngine,
    DrawnEngine,
    OpenEngine,
    RunnerEngine,
    SplitEngine,
    compile_sql,
)

from headrace.core.errors import Unsupported
from headrace.testing import Engine, ReferenceEngine, Transcript, differences, load, play
from headrace.testing.transcript import Counts, Expect, Lateness, Matches, Panes

PATHS = sorted(Path(__file__).parent.glob("*.yaml"))
ENGINES: dict[str, Callable[[Compiled, Path], Engine]] = {
    "batch": BatchEngine,
    "crash after each step": CrashEngine,
}
# A runner reads the log in Spark's tasks, so it runs stories that differ in what is read: typed
# columns, watermark, dead letters, a join, a derived stream, two streams, two that are joined, and
# carried views that must be folded again because an event came late. Two of them are drawn;
# `make prove` runs all.
READ = [
    "window_late_event",
    "malformed_types",
    "types_nested",
    "raw_fields",
    "join_missing_key",
    "derived_explode",
    "two_streams",
    "pace_own_epochs",
    "pace_shed_below_lag",
    "join_streams_full",
    "running_lag_late",
    "window_punctuated_out_of_order",
    "threshold_disorder",
]
# Those in which speed may be ahead of batch by time alone, or batch finds what speed waited for.
FOLLOWED = [path.stem for path in PATHS if path.stem.startswith(("idle_", "match_late_"))]
# Stories of what is designed but not built: the compiler must refuse them, in these words, until
# it is.
REFUSED = {
    "running_two_keys": "stream 'shares' uses two different PARTITION BY lists",
    "running_counted": "count_window and punctuated_window cannot read a stream with running "
    "aggregates",
}
BUILT = [path for path in PATHS if path.stem not in REFUSED]
# Patterns have tests of their own that need no Spark for each case, and stories of joined streams
# differ from each other in what is sent, not in what runs.
LONG = ("match_", "join_streams_", "idle_match", "idle_join_streams")


def is_long(path: Path) -> bool:
    return path.stem.startswith(LONG)


DRAWN = [p for p in BUILT if PROVE or drawn(p.stem).random() < (1 / 5 if is_long(p) else 1 / 4)]
Record = Callable[[str, object], None]
stories = pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def compiled(
    spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Transcript], Compiled]:
    """Compiles each transcript once."""
    known: dict[str, Compiled] = {}

    def compiled(story: Transcript) -> Compiled:
        if story.name not in known:
            folder = tmp_path_factory.mktemp("story")
            known[story.name] = compile_sql(
                spark, folder, story.definitions_sql, files_of(story), steps_max=story.steps_max
            )
        return known[story.name]

    return compiled


def files_of(story: Transcript) -> dict[str, bytes]:
    """The files of the story's project beside its definitions."""
    code = story.functions_text
    files = dict(story.table_files()) | {name: text.encode() for name, text in story.files.items()}
    return files | ({"functions.py": code.encode()} if code else {})


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_story_comes_true_on_the_reference(path: Path) -> None:
    play(load(path), ReferenceEngine())


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_the_story_comes_true_at_a_drawn_cut_and_after_a_drawn_kill(
    path: Path,
    compiled: Callable[[Transcript], Compiled],
    tmp_path: Path,
    record_property: Record,
) -> None:
    story = load(path)
    sends, rng = len(story.batches()), drawn(path.stem)
    record_property("stories", 1)
    served_by_batch_too(story, DrawnEngine(compiled(story), tmp_path, sends, rng))


@pytest.mark.prove
@pytest.mark.parametrize("engine", ENGINES)
@stories
def test_the_story_comes_true(
    path: Path,
    engine: str,
    compiled: Callable[[Transcript], Compiled],
    tmp_path: Path,
    record_property: Record,
) -> None:
    story = load(path)
    record_property("stories", 1)
    play(story, ENGINES[engine](compiled(story), tmp_path))


@pytest.mark.prove
@stories
def test_the_story_comes_true_wherever_the_log_is_cut(
    path: Path,
    compiled: Callable[[Transcript], Compiled],
    tmp_path: Path,
    record_property: Record,
) -> None:
    story = load(path)
    # Nothing or everything before the cut: that is what the other tests do.
    cuts = range(1, len(story.batches()))
    record_property("stories", len(cuts))
    for cut in cuts:
        play(story, SplitEngine(compiled(story), tmp_path / str(cut), cut))


@pytest.mark.prove
@stories
def test_the_story_comes_true_in_speed(
    path: Path,
    compiled: Callable[[Transcript], Compiled],
    tmp_path: Path,
    record_property: Record,
) -> None:
    story = load(path)
    record_property("stories", 1)
    served_by_batch_too(story, OpenEngine(compiled(story), tmp_path))


def served_by_batch_too(story: Transcript, engine: OpenEngine | DrawnEngine) -> None:
    """Play it; then a build over all of it finds what was served before."""
    play(story, engine)
    served = {view: engine.answer(view) for view in story.views()}
    for made in engine.parts.catch_up():
        assert [a for a in made.audits if a.differences or a.note] == []
    for view, rows in served.items():
        assert differences(rows, engine.answer(view), story.approximate) == []
    engine.close()


@pytest.mark.prove
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_story_comes_true_in_speed_with_batch_behind_it(
    name: str, compiled: Callable[[Transcript], Compiled], tmp_path: Path
) -> None:
    story = load(Path(__file__).parent / f"{name}.yaml")
    play(story, BehindEngine(compiled(story), tmp_path))


@pytest.mark.parametrize("name", READ if PROVE else drawn("read").sample(READ, 2))
def test_the_story_comes_true_as_a_project_runs_it(
    name: str, compiled: Callable[[Transcript], Compiled], tmp_path: Path
) -> None:
    story = load(Path(__file__).parent / f"{name}.yaml")
    play(story, RunnerEngine(compiled(story), tmp_path))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_built_is_refused(
    name: str, compiled: Callable[[Transcript], Compiled]
) -> None:
    with pytest.raises(Unsupported) as refused:
        compiled(load(Path(__file__).parent / f"{name}.yaml"))
    assert refused.value.message == REFUSED[name]


def test_there_are_many_stories_each_with_its_own_name_and_an_expectation() -> None:
    stories = [load(path) for path in PATHS]
    assert len(stories) >= 120
    assert len({story.name for story in stories}) == len(stories)
    claims = Expect | Counts | Lateness | Panes | Matches
    assert [s.name for s in stories if not any(isinstance(x, claims) for x in s.steps)] == []
