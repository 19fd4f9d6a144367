"""One Spark session a process, in a JVM that lives no longer than the process.

A setting of Spark is decided in this order, the later wins: our defaults, the user's own
spark-defaults.conf, `[spark]` in headrace.toml, and last the three settings that the meaning of a
view depends on. With a local master every port is on loopback. Nothing is printed: warnings go to
`work/spark.log`.
The JVM reads from a pipe that only this process holds, so even kill -9 of this process ends it.
tests/spark/test_session.py checks all of this.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headrace.core.errors import BadSetting, EngineFailed, HeadraceError, Unavailable
from headrace.define.settings import SparkSettings
from headrace.spark.archive_of_classes import archive_options
from headrace.spark.java import Java, find_java

# A view gives other numbers under other values of these, so nobody may change them.
MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    # The last of duplicate names counts, as where events are decoded.
    "spark.sql.variant.allowDuplicateKeys": "true",
}
# A JVM that is out of memory stands still for ever; one that ends can be replaced.
EXIT_ON_OOM, _OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError", 3
_NICENESS = 5
DEATH_SECONDS_MAX = 10.0  # from a lost connection to the end of the process
_MASTER_SECONDS_MAX = 5.0
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.adaptive.enabled": "false",  # re-planning costs a small aggregate more than it saves
    # What is kept in memory is an epoch, read a few times: compressing it costs more than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Workers are shared by tasks with the same environment, and this option would be a part of it
    # in SQL only.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # The master's files have checksums; Spark looks at them only when it is told to.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # A Python process of a machine that is busy with others may take long to say who it is.
    "spark.python.authenticate.socketTimeout": "120s",
}
_LOG4J = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}}{{UTC}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def start_session(settings: SparkSettings, *, app_name: str, work: Path) -> SparkSession:
    """Start Spark; `work` holds its log, warehouse and scratch files, for this session alone."""
    if SparkContext._active_spark_context is not None:
        raise EngineFailed("this process already has a Spark session", hint="stop it first.")
    work = work.resolve()
    conf = session_conf(settings, work, _base())
    _await_master(conf["spark.master"])
    _prepare(work, conf["spark.master"])
    gateway = _launch(conf | {"spark.app.name": app_name}, find_java(), work)
    interrupt = signal.getsignal(signal.SIGINT)
    _silence()
    try:
        context = SparkContext(
            conf=_spark_conf(conf | {"spark.app.name": app_name}), gateway=gateway
        )
        session = SparkSession(context)
        session.range(1)  # Makes the session's state, where a wrong spark.sql setting shows.
    except (Py4JError, PySparkException, ValueError) as error:
        _end(gateway)
        raise _failed(error, work) from error
    finally:
        _restore(interrupt)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop Spark and end its JVM, so that the same process may start another."""
    gateway = SparkContext._gateway
    # A JVM that died first cannot be asked to stop, and need not be.
    with contextlib.suppress(Py4JError, PySparkException, OSError):
        session.stop()
    _end(gateway)


def _behind_answers(process: Any) -> None:
    """Let Spark's work wait for this process, which answers questions and takes events in. What
    Spark starts later begins with the same priority.
    """
    if process is not None:
        priority = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), priority)


def check_alive(suspects: Sequence[str] = (), wait_s: float = 0.0) -> None:
    """Fail if Spark's JVM has ended, as it does when it runs out of memory; its end is waited for
    so long. `suspects` are what it was doing.
    """
    process = SparkContext._gateway.proc if SparkContext._gateway is not None else None
    code = _ended(process, wait_s) if process is not None else None
    if code is not None:
        doing = f"in progress was {', '.join(suspects)}; " if suspects else ""
        raise EngineFailed(
            _last_words(code),
            detail=f"{doing}what was acknowledged is in the log, and the next start continues "
            "from there.",
            hint="raise spark.memory, or take away the view or rule that needs so much; "
            "`headrace rule remove` works while the project is stopped.",
        )


def _ended(process: Any, wait_s: float) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return int(process.wait(wait_s))
    return None


def _last_words(code: int) -> str:
    if code == _OUT_OF_MEMORY:
        return "Spark ran out of memory, and its process has ended"
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return f"Spark's process has ended, {how}"


def lost(error: BaseException) -> bool:
    """Whether a call failed because Spark's JVM may have ended while it ran."""
    chain = error
    while chain is not None:
        if isinstance(chain, Py4JNetworkError | ConnectionError | EOFError):
            return True
        chain = chain.__cause__ or chain.__context__  # type: ignore[assignment]
    return False


def local(master: str) -> bool:
    return master.startswith("local")


def session_conf(settings: SparkSettings, work: Path, base: dict[str, str]) -> dict[str, str]:
    """Every Spark setting of the session; `base` is what the user told Spark itself."""
    for key in MEANING.keys() & settings.conf.keys():
        raise BadSetting(
            f"spark.conf may not set {key}: the meaning of every view depends on it",
            hint=f"remove it; it is always {MEANING[key]}.",
        )
    own = _stated(settings, defaults=True) | _DEFAULTS
    own |= {"spark.sql.warehouse.dir": str(work / "warehouse")}
    conf = own | base | _stated(settings, defaults=False) | settings.conf
    here = local(conf["spark.master"])
    conf = _local_conf(work) | conf if here else conf
    ours = f"{_java_options(work)} {EXIT_ON_OOM}" if here else EXIT_ON_OOM
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    conf["spark.driver.extraJavaOptions"] = f"{ours} {theirs}".strip()
    return conf | MEANING


def _stated(settings: SparkSettings, *, defaults: bool) -> dict[str, str]:
    """The three named settings that are (or are not) at their default: a default gives way to the
    user's spark-defaults.conf, a value that was stated does not."""
    keys = {
        "master": "spark.master",
        "memory": "spark.driver.memory",
        "shuffle_partitions": "spark.sql.shuffle.partitions",
    }
    values = {f.name: (getattr(settings, f.name), f.default) for f in fields(settings)}
    return {
        spark: str(values[name][0])
        for name, spark in keys.items()
        if (values[name][0] == values[name][1]) == defaults
    }


def _local_conf(work: Path) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",  # loopback is shared with every user of the machine
        "spark.local.dir": str(work / "scratch"),
        "spark.python.daemon.module": "headrace.spark.python_daemon",
    }


def _java_options(work: Path) -> str:
    options = [f"-Dlog4j2.configurationFile={work / 'log4j2.properties'}"]
    options += [f"-Djava.io.tmpdir={work / 'scratch'}", "-XX:-UsePerfData"]
    return " ".join(map(shlex.quote, options))


def _base() -> dict[str, str]:
    """What the user told Spark itself, in spark-defaults.conf or to spark-submit, if it runs us."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        gateway = launch_gateway()
        return dict(SparkConf(_jvm=gateway.jvm).getAll())
    home = os.environ.get("SPARK_HOME") or str(Path(sys.modules["pyspark"].__file__ or "").parent)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    path = Path(folder, "spark-defaults.conf")
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines)
    return {p[0]: p[1].strip() for p in pairs if len(p) == 2 and p[0][:1] not in ("#", "!")}


def _spark_conf(conf: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(conf.items()))


def _prepare(work: Path, master: str) -> None:
    # What a killed JVM left behind is of no use to the next one.
    shutil.rmtree(work / "scratch", ignore_errors=True)
    (work / "scratch").mkdir(parents=True)
    (work / "log4j2.properties").write_text(_LOG4J.format(log=work / "spark.log"))
    if local(master):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        # Machines elsewhere may have their Python in another place, which the user then names.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _await_master(master: str) -> None:
    """Refuse a standalone master that does not answer; Spark itself would try for a minute."""
    places = re.findall(r"([^/,:]+):(\d+)", master) if master.startswith("spark://") else []
    for host, port in places:
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), _MASTER_SECONDS_MAX / len(places)).close()
            return
    if places:
        raise Unavailable(
            f"the Spark master {master} does not answer",
            hint="start it, or set spark.master in headrace.toml to one that runs.",
        )


def _launch(conf: dict[str, str], java: Java, work: Path) -> Any:
    """Start the JVM with its output in a file: it warns before any logging is set up."""
    os.environ["JAVA_HOME"] = str(java.home)
    if local(conf["spark.master"]):
        options = f"{archive_options(java)} {conf['spark.driver.extraJavaOptions']}".strip()
        conf = conf | {"spark.driver.extraJavaOptions": options}
    with (work / "spark.out").open("wb") as out:
        try:
            gateway = launch_gateway(
                _spark_conf(conf), {"stdout": out, "stderr": subprocess.STDOUT}
            )
        except (PySparkException, Py4JError, OSError) as error:
            raise _failed(error, work) from error
    _behind_answers(gateway.proc)
    return gateway


def _end(gateway: Any) -> None:
    process = gateway.proc
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is None:  # spark-submit started the JVM
        return
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _silence() -> None:
    # PySpark prints each error of a query as JSON, beside raising it.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _restore(interrupt: Any) -> None:
    # PySpark takes SIGINT for itself; the process that started us has its own way to stop.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def _failed(error: Exception, work: Path) -> HeadraceError:
    if isinstance(error, Py4JJavaError):
        reason = str(error.java_exception).splitlines()[0]
    else:
        out = work / "spark.out"
        lines = out.read_text("utf-8", "replace").splitlines() if out.is_file() else []
        reason = next((x for x in lines if re.search("Error|Exception|Invalid", x)), str(error))
    return EngineFailed(
        "Spark could not start", detail=reason, hint=f"its log is {work / 'spark.log'}."
    )
