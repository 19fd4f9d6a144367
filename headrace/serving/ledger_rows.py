"""The ledger of alerts as the rows of a view."""

from __future__ import annotations

import pyarrow as pa

from headrace.certified.typed import quoted
from headrace.compile.plan import ViewPlan
from headrace.serving.database import Transaction
from headrace.serving.merged_rows import typed


def ledger_rows(db: Transaction, view: ViewPlan) -> pa.Table:
    names = ", ".join(quoted(output.name) for output in view.outputs)
    rows = db.execute(f"SELECT {names} FROM _ledger").fetchall()
    columns = zip(*rows, strict=True) if rows else ([] for _ in view.outputs)
    pairs = zip(view.outputs, columns, strict=True)
    return pa.table(
        {out.name: typed(out.type, pa.chunked_array([values])) for out, values in pairs}
    )
