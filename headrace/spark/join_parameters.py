"""The inputs of the SQL of a joined flow besides its events: which are new, and the watermarks.

Every relation has the column `_new`. The watermarks of the flow's n-th stream are the parameters
`before_n` and `after_n`; they decide which events without a partner give a row.
"""

from __future__ import annotations

from typing import Any

from headrace.compile.join import NEW
from headrace.serving.watermark import Times


def with_new(events: Any, new: bool) -> Any:
    """The events with the column `_new`."""
    from pyspark.sql.functions import lit

    return events.withColumn(NEW, lit(new))


def watermark_parameters(before: Times, after: Times) -> dict[str, int | None]:
    """The SQL's parameters: the streams' watermarks before and after."""
    found = {f"before_{n}": mark for n, mark in enumerate(before)}
    return found | {f"after_{n}": mark for n, mark in enumerate(after)}
