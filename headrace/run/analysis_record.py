"""What Spark's analyser has said about a project, kept in its state from one start to the next.

With it, a project whose definitions are unchanged is compiled while Spark starts. The record holds
for one version of Headrace and of Spark, their settings and the project's functions. One that is
missing or damaged costs the start the time of an analysis. tests/run/test_analysis_record.py
changes each of these; headrace/compile/recorded_analyser.py says how an answer is found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.compile.recorded_analyser import Answer
from headrace.core.version import __version__
from headrace.define.functions import FunctionDefinition
from headrace.define.layout import Layout
from headrace.define.project import Project

# With these, Spark is not the one that was installed with Headrace, or was started by others.
_OTHER_SPARK = ("SPARK_HOME", "PYSPARK_GATEWAY_PORT")


@dataclass(frozen=True, slots=True)
class AnalysisRecord:
    """The answers in a file; `about` is what all of them depend on."""

    path: Path
    about: str
    answers: Mapping[str, Answer]

    @staticmethod
    def of(project: Project, functions: Iterable[FunctionDefinition]) -> AnalysisRecord:
        """The record of a project; empty if Spark may be another one at each start."""
        work = Layout.of(project).work("run")
        path, other = work / "analysis", any(name in os.environ for name in _OTHER_SPARK)
        about = "" if other else _about(project, work, functions)
        return AnalysisRecord(path, about, {} if other else _read(path))

    def replace(self, answers: Mapping[str, Answer]) -> None:
        """Write the answers of the newest compilation, if they are others."""
        if not self.about or answers == self.answers:
            return
        text = json.dumps(answers)
        new = self.path.with_suffix(".new")
        # Without it the next start is slow, and this one is well.
        with contextlib.suppress(OSError):
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(f"{_checksum(text)}\n{text}", "utf-8")
            os.replace(new, self.path)


def _about(project: Project, work: Path, functions: Iterable[FunctionDefinition]) -> str:
    import pyspark

    from headrace.spark.session import session_conf, user_conf

    conf = session_conf(project.settings.spark, work, user_conf())
    called = [(each.name, each.returns.spark, each.kind) for each in functions]
    return json.dumps([__version__, pyspark.__version__, sorted(conf.items()), called])


def _read(path: Path) -> dict[str, Answer]:
    try:
        checksum, _, text = path.read_text("utf-8").partition("\n")
        found: dict[str, Answer] = json.loads(text) if checksum == _checksum(text) else {}
    except (OSError, ValueError):
        return {}
    return found


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
