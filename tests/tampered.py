"""Changes the store behind everybody's back, for tests of what finds that out."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headrace.compile.plan import ViewPlan
from headrace.serving.commits import record_changed
from headrace.serving.database_store import DatabaseStore
from headrace.serving.merge import GROUP, stored_rows
from headrace.serving.merged_rows import read_stored
from headrace.serving.runs import Layer, add_rows, drop_rows


def change_rows(store: DatabaseStore, plan: ViewPlan, layer: Layer, sql: str) -> Callable[[], None]:
    """Run a statement that changes the relation `rows`: the stored rows of a layer, the first of
    which has the rowid 0. What is returned puts them back.
    """
    with store.read() as db:
        before = read_stored(db, plan, layers=[layer])
    with duckdb.connect() as engine:
        engine.register("given", before)
        engine.execute("CREATE TABLE rows AS SELECT * FROM given ORDER BY _key, _group")
        assert engine.execute(sql).fetchone() != (0,), "nothing was changed"
        after = engine.sql("FROM rows").to_arrow_table()

    def write(rows: pa.Table) -> None:
        with store.write() as db:
            drop_rows(db, plan.stored_name, layer)
            for group in sorted(set(rows.column(GROUP).to_pylist())):
                part = stored_rows(plan, rows.filter(pc.equal(rows.column(GROUP), group)))
                add_rows(db, plan.stored_name, layer, part, group)
            record_changed(db, plan.recompute, None)

    write(after)
    return lambda: write(before)
