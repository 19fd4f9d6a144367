"""The server's process loads no Spark, whatever it is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CODE = """
import pkgutil, importlib, sys, headrace.server
for found in pkgutil.iter_modules(headrace.server.__path__, "headrace.server."):
    importlib.import_module(found.name)
print("pyspark" in sys.modules)
"""


def test_the_server_starts_without_spark() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert ended.stdout == "False\n"
