"""The ends that the check of a project can come to."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from run.waiting import wait

from headrace.core.errors import EngineFailed, LimitReached, Unavailable, UnknownName
from headrace.core.time import SECOND
from headrace.run.job import Names
from headrace.server.checking import ProjectChecker

pytestmark = pytest.mark.process


def said(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_names_come_back() -> None:
    code = """print('warning'); print('{"names": {"views": ["v"]}}')"""
    assert ProjectChecker().check(said(code), 60 * SECOND) == Names(views=["v"])


def test_an_error_comes_back_as_the_compiler_had_it() -> None:
    fields = '{"condition":"UnknownName","message":"m","detail":null,"hint":"h","origin":"a.sql:3"}'
    with pytest.raises(UnknownName) as raised:
        ProjectChecker().check(
            said(f"print('{{\"error\": {fields}}}'); raise SystemExit(1)"), 60 * SECOND
        )
    assert (raised.value.message, raised.value.hint, raised.value.origin) == ("m", "h", "a.sql:3")


def test_a_check_that_says_nothing_failed_with_what_it_printed() -> None:
    with pytest.raises(EngineFailed) as raised:
        ProjectChecker().check(said("import sys; sys.exit('no memory')"), 60 * SECOND)
    assert raised.value.message == "the project check exited without a result"
    assert raised.value.detail == "no memory"


def test_a_check_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    inner = f"import os,time; open('{tmp_path}/pid','w').write(str(os.getpid())); time.sleep(600)"
    code = f"import subprocess,sys; subprocess.run([sys.executable,'-S','-c',{inner!r}])"
    with pytest.raises(LimitReached) as raised:
        ProjectChecker().check(said(code), 5 * SECOND)
    assert raised.value.message == "the project check timed out after 5 seconds"
    pid = int((tmp_path / "pid").read_text())
    wait(lambda: not _runs(pid))


def test_a_server_that_stops_breaks_a_check_off_and_says_so(tmp_path: Path) -> None:
    checker, raised = ProjectChecker(), []
    code = f"import time; open('{tmp_path}/begun','w'); time.sleep(600)"

    def checked() -> None:
        with pytest.raises(Unavailable) as found:
            checker.check(said(code), 600 * SECOND)
        raised.append(found.value)

    threads = [threading.Thread(target=checked) for _ in range(2)]  # one runs, and one waits
    for thread in threads:
        thread.start()
    wait((tmp_path / "begun").is_file)
    checker.stop()
    for thread in threads:
        thread.join(60)
    assert [error.message for error in raised] == [
        "the server is shutting down, and the project was not checked"
    ] * 2
    assert raised[0].hint == "retry when the server is running again."


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may have come yet to fetch what is left of it.
    return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
