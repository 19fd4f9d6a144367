"""The ends that the check of a project can come to."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from run.waiting import wait

from headrace.core.errors import EngineFailed, LimitReached, UnknownName
from headrace.core.time import SECOND
from headrace.run.job import Names
from headrace.server.checking import check


def said(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_names_come_back() -> None:
    code = """print('warning'); print('{"names": {"views": ["v"]}}')"""
    assert check(said(code), 60 * SECOND) == Names(views=["v"])


def test_an_error_comes_back_as_the_compiler_had_it() -> None:
    fields = '{"condition":"UnknownName","message":"m","detail":null,"hint":"h","origin":"a.sql:3"}'
    with pytest.raises(UnknownName) as raised:
        check(said(f"print('{{\"error\": {fields}}}'); raise SystemExit(1)"), 60 * SECOND)
    assert (raised.value.message, raised.value.hint, raised.value.origin) == ("m", "h", "a.sql:3")


def test_a_check_that_says_nothing_failed_with_what_it_printed() -> None:
    with pytest.raises(EngineFailed) as raised:
        check(said("import sys; sys.exit('no memory')"), 60 * SECOND)
    assert raised.value.message == "the check of the project ended without a result"
    assert raised.value.detail == "no memory"


def test_a_check_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    inner = f"import os,time; open('{tmp_path}/pid','w').write(str(os.getpid())); time.sleep(600)"
    code = f"import subprocess,sys; subprocess.run([sys.executable,'-S','-c',{inner!r}])"
    with pytest.raises(LimitReached) as raised:
        check(said(code), 5 * SECOND)
    assert raised.value.message == "the check of the project took more than 5 s"
    pid = int((tmp_path / "pid").read_text())
    wait(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may have come yet to fetch what is left of it.
    return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
