"""A wheel holds everything that an installation needs, and is used in an environment of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from headrace.console import STATIC
from headrace.core.version import __version__

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]


def clone(folder: Path) -> Path:
    """What git has of the package, and nothing that was built."""
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    built = shutil.ignore_patterns("static", "__pycache__")
    shutil.copytree(ROOT / "headrace", folder / "headrace", ignore=built)
    return folder


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
        "--disable-pip-version-check", "--wheel-dir", "dist", ".", cwd=folder,
    )  # fmt: skip


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Isolated: what is imported is what was installed, not this repository.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=200
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = clone(tmp_path_factory.mktemp("built"))
    shutil.copytree(STATIC, folder / "headrace" / "console" / "static")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    (made,) = (folder / "dist").iterdir()
    return made


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an empty environment with the wheel; what it needs is lent by this one."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder)
    bin, lent = folder / "bin", sysconfig.get_path("purelib")
    (site,) = folder.glob("lib/python*/site-packages")
    done = run(
        sys.executable, "-m", "pip", f"--python={bin / 'python'}", "install", "--no-deps",
        "--no-index", "--disable-pip-version-check", str(wheel), cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (site / "lent.pth").write_text(f"{lent}\n")
    return bin


def test_a_clean_clone_builds_no_wheel_without_a_console(tmp_path: Path) -> None:
    done = build(clone(tmp_path))
    assert done.returncode == 1
    assert (
        "error: the console is not built, and the wheel would be without it: "
        "run `make wheel`, or `make console` before this"
    ) in done.stdout + done.stderr
    assert not list(tmp_path.glob("dist/*"))


def test_an_editable_install_needs_no_console_yet(tmp_path: Path) -> None:
    clone(tmp_path)
    code = "from setuptools.build_meta import build_editable as build; print(build('dist'))"
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("headrace/")}
    files = (path for path in (ROOT / "headrace").rglob("*") if path.is_file())
    made = {".pyc", ""}  # of Python, and the mark of `make`
    wanted = {str(path.relative_to(ROOT)) for path in files if path.suffix not in made}
    assert held == wanted
    assert "headrace/cli/template/lookups/sections.csv" in held


def test_what_is_installed_makes_a_project_and_takes_its_events(
    commands: Path, tmp_path: Path
) -> None:
    def headrace(*arguments: str) -> str:
        done = run(str(commands / "headrace"), *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert headrace("--version") == f"headrace {__version__}\n"
    headrace("new", "shop")
    sent = headrace("send", "clicks", "shop/events.ndjson", "--project", "shop", "--json")
    assert (json.loads(sent)["accepted"], json.loads(sent)["duplicates"]) == (21, 1)


def test_what_is_installed_has_the_console(commands: Path, tmp_path: Path) -> None:
    code = "import headrace.console as c; print(c.__file__, len(c.load().assets))"
    said = run(str(commands / "python"), "-c", code, cwd=tmp_path).stdout.split()
    (installed,) = commands.parent.glob("lib/*/site-packages/headrace/console/__init__.py")
    assert said == [str(installed), str(len(list((STATIC / "assets").iterdir())))]
