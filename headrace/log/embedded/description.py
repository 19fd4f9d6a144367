"""The file that describes a topic: its format's version and its number of partitions."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.core.errors import BadProject

VERSION = 1


def read_description(path: Path) -> int | None:
    """How many partitions the topic has; None if there is no topic."""
    try:
        described = json.loads((path / "topic.json").read_text("utf-8"))
        version, partitions = described["version"], int(described["partitions"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadProject(f"{path / 'topic.json'} cannot be read", detail=str(error)) from error
    if version != VERSION:
        raise BadProject(
            f"the log at {path} has format {version}, and this Headrace reads format {VERSION}",
            hint="run the Headrace that wrote it, or a newer one.",
        )
    return partitions
