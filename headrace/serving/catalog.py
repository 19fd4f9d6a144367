"""The deployed plan, and the versions of views.

A deployment is one transaction. A view whose partials change starts as a new version beside the
live one, which answers until the new one is promoted. A view whose partials stay the same is
changed at once. tests/serving/test_catalog.py checks each kind of change.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from headrace.compile.flow import FlowPlan, flows_of
from headrace.compile.plan import ColumnPlan, Plan, StreamPlan, ViewPlan
from headrace.core.errors import BadDefinition, NotReady
from headrace.core.msgspec_types import prepare_types
from headrace.core.position import Position
from headrace.serving.carried import create_states, drop_states
from headrace.serving.commits import read_meta, write_meta
from headrace.serving.database import Transaction
from headrace.serving.progress import read_stream, stored_times
from headrace.serving.runs import drop_version
from headrace.serving.store import AuditResult, Change, Version, VersionStatus
from headrace.serving.stored_json import decode_stored

prepare_types(Plan, list[AuditResult])
PLAN = "plan"  # the key in `_meta` of the deployed plan


def read_plan(db: Transaction) -> Plan | None:
    text = read_meta(db, PLAN)
    return _decoded(text) if text else None


def required_plan(plan: Plan | None) -> Plan:
    """The deployed plan; NotReady if there is none."""
    if plan is None:
        raise NotReady("nothing is deployed yet", hint="start the project with `headrace run`.")
    return plan


@lru_cache(maxsize=16)  # every read decodes the same plan
def _decoded(text: str) -> Plan:
    return decode_stored(text, Plan)


def read_versions(db: Transaction, stream: str) -> list[Version]:
    rows = db.execute(
        "SELECT plan, state, since FROM _views WHERE stream = ? ORDER BY name, state", (stream,)
    )
    return [
        Version(_decoded_view(plan), VersionStatus(state), Position.parse(since))
        for plan, state, since in rows
    ]


def live_plan(db: Transaction, name: str) -> ViewPlan | None:
    """The version of a view that answers."""
    sql = "SELECT plan FROM _views WHERE name = ? AND state = ?"
    row = db.execute(sql, (name, VersionStatus.LIVE)).fetchone()
    return _decoded_view(row[0]) if row else None


@lru_cache(maxsize=1_000)  # every commit decodes the same plans
def _decoded_view(text: str) -> ViewPlan:
    return decode_stored(text, ViewPlan)


def deploy(db: Transaction, plan: Plan) -> list[Change]:
    """Deploy the plan, inside the caller's transaction."""
    for flow in flows_of(plan):
        _deploy_flow(db, flow)
    changes = [_deploy_view(db, view) for view in plan.views if view.kept]
    before, kept = read_plan(db), {change.name for change in changes}
    for view in before.views if before else ():
        if view.name not in kept:
            drop_view(db, view.name)
    changes += [change for change in changes_of(before, plan) if change.name not in kept]
    write_meta(db, PLAN, msgspec.json.encode(plan).decode())
    return changes


def changes_of(deployed: Plan | None, plan: Plan) -> list[Change]:
    """What deploying the plan would do; nothing is changed."""
    old = {view.name: view for view in deployed.views} if deployed else {}
    changes = []
    for view in plan.views:
        before = old.pop(view.name, None)
        if before is None or before.kept < view.kept:
            how = "built from the whole history" if view.kept else "derived when it is read"
            changes.append(Change(view.name, "new", how))
        elif view.kept and before.recompute != view.recompute:
            changes.append(Change(view.name, "rebuild", "built beside the old one, then swapped"))
        elif before.fingerprint != view.fingerprint:
            changes.append(Change(view.name, "reread", "read differently; nothing is recomputed"))
        else:
            changes.append(Change(view.name, "unchanged"))
    return changes + [Change(name, "removed", "no longer kept") for name in old]


def _deploy_flow(db: Transaction, flow: FlowPlan) -> None:
    text = msgspec.json.encode(flow).decode()
    row = db.execute("SELECT plan FROM _streams WHERE name = ?", (flow.name,)).fetchone()
    if row:
        before = decode_stored(row[0], FlowPlan)
        for old, new in zip(before.streams, flow.streams, strict=True):
            check_history(old, new)
        db.execute("UPDATE _streams SET plan = ? WHERE name = ?", (text, flow.name))
        return
    start, no_times = Position.start(flow.partitions), stored_times((None,) * flow.partitions)
    no_watermarks = stored_times((None,) * len(flow.streams))
    db.execute(
        "INSERT INTO _streams VALUES (?, ?, ?, 0, NULL, NULL, 0, NULL, ?, ?, ?)",
        (flow.name, text, str(start), no_watermarks, no_times, no_watermarks),
    )
    rows = [(flow.name, partition) for partition in range(flow.partitions)]
    db.executemany("INSERT INTO _progress VALUES (?, ?, 0, NULL, NULL)", rows)


def check_histories(deployed: Plan | None, plan: Plan) -> None:
    """Refuse a plan that the history of a deployed stream does not allow."""
    before = {stream.name: stream for stream in deployed.streams} if deployed else {}
    for stream in plan.streams:
        if stream.name in before:
            check_history(before[stream.name], stream)


def check_history(old: StreamPlan, new: StreamPlan) -> None:
    """The history of a stream does not change: columns may be added, and nothing else may change.
    Computed columns are not stored, so they may.
    """
    before, columns = _stored(old), _stored(new)
    kept = all(columns.get(name) == column for name, column in before.items())
    added = columns.keys() - before.keys()
    if (
        kept
        and all(columns[name].nullable for name in added)
        and old.partitions == new.partitions
        and old.format == new.format
        and (old.watermark, old.ahead_us) == (new.watermark, new.ahead_us)
    ):
        return
    raise BadDefinition(
        f"the new definition of stream '{new.name}' is incompatible with its stored events",
        detail="nullable columns can be added; "
        "types, names, NOT NULL, FORMAT, FROM, DEFAULT, format, partitions, WATERMARK and "
        "watermark.ahead cannot be changed.",
        hint="create a stream with another name, or restore the old definition.",
    )


def _stored(stream: StreamPlan) -> dict[str, ColumnPlan]:
    return {column.name: column for column in stream.columns if column.generated is None}


def _deploy_view(db: Transaction, plan: ViewPlan) -> Change:
    rows = db.execute(
        "SELECT version, state, plan FROM _views WHERE name = ?", (plan.name,)
    ).fetchall()
    text = msgspec.json.encode(plan).decode()
    for version, state, _ in rows:
        if version != plan.recompute and state == VersionStatus.BUILDING:
            _drop_version(db, plan.name, version)
    for version, _, old in rows:
        if version == plan.recompute:
            db.execute(
                "UPDATE _views SET plan = ? WHERE name = ? AND version = ?",
                (text, plan.name, version),
            )
            same = _decoded_view(old).fingerprint == plan.fingerprint
            return Change(plan.name, "unchanged" if same else "reread")
    close_group(db, plan.stream)
    since = read_stream(db, plan.stream).position
    db.execute(
        "INSERT INTO _views VALUES (?, ?, ?, ?, ?, ?)",
        (plan.name, plan.recompute, plan.stream, text, VersionStatus.BUILDING, str(since)),
    )
    create_states(db, plan)
    return Change(plan.name, "rebuild" if rows else "new")


def close_group(db: Transaction, stream: str, opened_before: int | None = None) -> None:
    """Close the open group, or only if it was opened before a time."""
    db.execute(
        "UPDATE _groups SET closed = 1 WHERE stream = ?1 AND closed = 0 "
        "AND (CAST(?2 AS INTEGER) IS NULL OR opened_at <= ?2)",
        (stream, opened_before),
    )


def drop_view(db: Transaction, name: str) -> None:
    for (version,) in db.execute("SELECT version FROM _views WHERE name = ?", (name,)).fetchall():
        _drop_version(db, name, version)


def _drop_version(db: Transaction, name: str, version: str) -> None:
    drop_states(db, name, version)
    db.execute("DELETE FROM _views WHERE name = ? AND version = ?", (name, version))
    db.execute("DELETE FROM _provisional WHERE version = ?", (version,))
    drop_version(db, f"{name}_{version}")


def go_live(db: Transaction, version: Version) -> None:
    """Make the version the live one, and drop the others."""
    for (other,) in db.execute(
        "SELECT version FROM _views WHERE name = ? AND version <> ?", (version.name, version.id)
    ).fetchall():
        _drop_version(db, version.name, other)
    db.execute(
        "UPDATE _views SET state = ? WHERE name = ? AND version = ?",
        (VersionStatus.LIVE, version.name, version.id),
    )


def record_table(db: Transaction, name: str, version: str, now_us: int) -> None:
    """Record the version of a table that is used from now on; the same version keeps its time."""
    db.execute(
        "INSERT INTO _tables VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
        "SET version = excluded.version, loaded_at = excluded.loaded_at "
        "WHERE _tables.version <> excluded.version",
        (name, version, now_us),
    )


def read_tables(db: Transaction) -> dict[str, tuple[str, int]]:
    rows = db.execute("SELECT name, version, loaded_at FROM _tables")
    return {name: (version, loaded_at) for name, version, loaded_at in rows}


def provisional(db: Transaction, version: str, group: int | None = None) -> int:
    """How many rows of a version's answer are wrong until the next generation, in all groups or
    up to one.
    """
    row = db.execute(
        "SELECT coalesce(sum(count), 0) FROM _provisional "
        "WHERE version = ?1 AND (CAST(?2 AS INTEGER) IS NULL OR number <= ?2)",
        (version, group),
    ).fetchone()
    return int(row[0])
