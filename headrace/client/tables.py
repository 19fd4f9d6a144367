"""An answer as a pandas frame: the columns of its Arrow table (headrace/serving/answer_table.py).

Integers and booleans have the nullable types of pandas, so integers of 2^53 and more are exact. The
freshness of the answer is in the frame's `attrs`.
tests/client/test_tables.py checks both.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headrace.core.errors import Unavailable
from headrace.serving.answer import Answer
from headrace.serving.answer_table import answer_metadata, arrow_table


def pandas_frame(answer: Answer) -> Any:
    """The answer as a frame of pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        raise Unavailable(
            "to_pandas requires pandas, which is not installed",
            hint="install it with `pip install pandas`, or use to_arrow() or rows().",
        ) from error
    whole = {
        getattr(pa, f"int{bits}")(): getattr(pd, f"Int{bits}Dtype")() for bits in (8, 16, 32, 64)
    }
    kinds = {**whole, pa.bool_(): pd.BooleanDtype()}
    frame = arrow_table(answer).to_pandas(types_mapper=kinds.get)
    frame.attrs = answer_metadata(answer)
    return frame
