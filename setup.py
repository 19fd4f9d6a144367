"""What pyproject.toml cannot say: a wheel is built with the console in it, or not at all.

The console is built from TypeScript by `make console` and is not in git, so a clean clone has none.
An editable install needs none: it serves what is built later. tests/deploy/test_wheel.py builds,
installs and uses a wheel.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

PAGE = Path(__file__).parent / "headrace" / "console" / "static" / "index.html"


class BuildWithConsole(build_py):
    def run(self) -> None:
        if not self.editable_mode and not PAGE.is_file():
            raise SetupError(
                "the console is not built, and the wheel would be without it: "
                "run `make wheel`, or `make console` before this"
            )
        super().run()


setup(cmdclass={"build_py": BuildWithConsole})
