"""The console's types are those of the OpenAPI documents."""

from __future__ import annotations

import runpy
from pathlib import Path

GENERATOR = Path(__file__).parents[2] / "console" / "wire.py"


def test_the_types_of_the_console_are_generated_from_the_documents() -> None:
    generator = runpy.run_path(str(GENERATOR))
    assert generator["WIRE"].read_text() == generator["wire"](), "stale: run `make wire`"
