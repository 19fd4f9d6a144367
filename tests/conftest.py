"""Fixtures of all tests, and how tests are chosen, ordered and shared out.

A test is marked by what it needs: `spark` (it asks for the fixture), `browser` (it asks for
Chromium), `process` (it starts a process; without the mark it fails there). `make test-fast` runs
those without a mark. `make test` runs all but those marked `prove`, which are the
exhaustive forms; `make prove` runs everything (tests/prove.py).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from chance import PROVE, SEED
from postgres_server import PostgresServer
from recording import Recording, shard_of
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from headrace.define.settings import SparkSettings

# A worker is given the width of a terminal, and the command line would keep to it.
os.environ.pop("COLUMNS", None)
# A JVM of the tests lives for minutes: the second compiler and a collector for large heaps take
# more of the cores than they give back. What Spark computes is the same.
os.environ["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Stores and logs sync at each commit, and a disk lets the tests wait for that. `make prove` keeps
# to the disk.
SHARED_MEMORY = Path("/dev/shm")
if not PROVE and os.access(SHARED_MEMORY, os.W_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(SHARED_MEMORY))
# Most queries of the tests are run once, over a few rows: compiling and distributing them costs
# more than they do. `make prove`, and every project that a test starts, has Spark as the product
# has it.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Folders whose tests share a project that runs, and files whose tests are long and share nothing.
SHARED = {"tests/console", "tests/run/shared"}
APART = {
    "tests/run/test_kills.py", "tests/laws/test_interleavings.py", "tests/laws/test_merge.py",
}  # fmt: skip
STORIES = {path.stem for path in (Path(__file__).parent / "transcripts").glob("*.yaml")}
NEEDS = ("spark", "browser", "process")
_unmarked: pytest.Item | None = None  # the test that runs, if it needs none of these


class Groups(LoadScopeScheduling):
    """Shares tests out by unit.

    Tests of Spark are in front, the stories last among them, and tests of other processes at the
    back. The first worker begins in front and the others at the back. More than three end where the
    stories begin: their JVMs would first have to become warm, on two cores that three keep busy.
    """

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        last = next(reversed(self.workqueue), None)
        if node.gateway.id in {"gw0", "gw1", "gw2"} or last not in STORIES or node.shutting_down:
            super()._reschedule(node)
        elif not self._pending_of(self.assigned_work[node]):
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id != "gw0":
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def unit_of(nodeid: str) -> str:
    """What stays with one worker and in one shard: a story, what shares a project, or a file."""
    path, _, rest = nodeid.partition("::")
    if path in APART:
        return nodeid
    parameters = rest.partition("[")[2].removesuffix("]").split("-")
    story = next((part for part in parameters if part in STORIES), None)
    folder = str(Path(path).parent)
    if folder in SHARED:
        return folder
    return story if folder == "tests/transcripts" and story else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    return Groups(config, log)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.core.global_force_seed = SEED  # type: ignore[attr-defined]
    # An example may take long on a busy machine; pytest's own limit ends one that hangs.
    hypothesis.settings.register_profile("headrace", deadline=None)
    hypothesis.settings.load_profile("headrace")
    record = os.environ.get("HEADRACE_RECORD")
    if record:
        worker, commit = hasattr(config, "workerinput"), os.environ["HEADRACE_COMMIT"]
        config.pluginmanager.register(Recording(Path(record), worker, commit))
    sys.addaudithook(_no_process)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"HEADRACE_SEED={SEED}" + (" HEADRACE_PROVE=1" if PROVE else ""))


@pytest.hookimpl(tryfirst=True)  # before the marks are looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in {"spark", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(mark)
    chosen = [item for item in items if PROVE or not item.get_closest_marker("prove")]
    chosen = shard_of(chosen, lambda item: unit_of(item.nodeid))
    chosen.sort(key=_place)
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def _place(item: pytest.Item) -> int:
    """Spark's tests in front, those of other processes at the back, and the fast between; last what
    takes longest, because two workers begin there.
    """
    path = item.nodeid.partition("::")[0]
    process = item.get_closest_marker("process")
    if str(Path(path).parent) in SHARED or (process and path in APART):
        return 3
    if process or item.get_closest_marker("browser"):
        return 2
    return 0 if item.get_closest_marker("spark") else 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _unmarked
    _unmarked = None if any(map(item.get_closest_marker, NEEDS)) else item
    try:
        return (yield)
    finally:
        _unmarked = None


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around that of Hypothesis
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """How many examples of a law there were, for the record. Too few are a failure: Hypothesis
    stops in silence when nearly all that it draws are too large or not valid.
    """
    yield
    statistics = getattr(item, "hypothesis_statistics", "")
    passing = re.findall(r"(\d+) passing", statistics)
    if passing:
        item.user_properties.append(("examples", sum(map(int, passing))))
    if "satisfied assumptions" in statistics:
        pytest.fail("Hypothesis gave up before it had made all examples:\n" + statistics)


def _no_process(event: str, arguments: Any) -> None:
    if event in {"subprocess.Popen", "os.posix_spawn"} and _unmarked:
        raise AssertionError(f"{_unmarked.name} starts a process, so it is to be marked `process`")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """A command says where its lines go and which files others may read; the next test begins as
    this one did.
    """
    umask = os.umask(0o022)
    os.umask(umask)
    yield
    os.umask(umask)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The shared session; a test leaves no view, setting or query behind in it."""
    from headrace.spark.session import start_session, stop_session

    work = tmp_path_factory.mktemp("spark")
    settings = SparkSettings(conf={} if PROVE else SMALL)
    session = start_session(settings, app_name="tests", work=work)
    yield session
    stop_session(session)
