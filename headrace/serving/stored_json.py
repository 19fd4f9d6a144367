"""Plans, audits and destinations are kept as JSON, in the form of the Headrace that wrote them.

tests/serving/test_catalog.py reads a plan of another form.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from headrace.core.errors import UnsupportedFormat
from headrace.core.version import __version__
from headrace.serving.checksums import REMEDY

Stored = TypeVar("Stored")


def decode_stored(text: str, of: type[Stored]) -> Stored:
    """A value of the store; UnsupportedFormat if this Headrace does not know its form."""
    try:
        return msgspec.json.decode(text, type=of)
    except msgspec.DecodeError as error:
        raise UnsupportedFormat(
            f"the store contains JSON that Headrace {__version__} cannot read: {error}",
            detail="another version of Headrace wrote it; nothing was changed.",
            hint=f"use the Headrace that wrote it; or {REMEDY}",
        ) from error
