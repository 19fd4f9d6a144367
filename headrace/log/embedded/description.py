"""The file that describes a topic: the version of its format, which covers blocks, indexes and
marks, and its number of partitions. Every reader and writer of a topic reads it first.
"""

from __future__ import annotations

import json
from pathlib import Path

from headrace.core.errors import BadProject
from headrace.core.format_version import FormatVersions

LOG = FormatVersions("log", oldest=1, newest=1)


def read_description(path: Path) -> int | None:
    """How many partitions the topic has; None if there is no topic."""
    try:
        described = json.loads((path / "topic.json").read_text("utf-8"))
        version, partitions = int(described["version"]), int(described["partitions"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise BadProject(f"{path / 'topic.json'} cannot be read", detail=str(error)) from error
    LOG.check(version, path)
    return partitions
