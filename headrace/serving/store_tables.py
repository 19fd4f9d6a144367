"""The tables of the store. The tables of states of carried views are created when they are
deployed.

SQL that SQLite and PostgreSQL have in common, but for WITHOUT ROWID, AUTOINCREMENT and the names of
types. headrace/core/migrations.py says how a store of an earlier version gets them.
"""

from __future__ import annotations

from headrace.core.migrations import DatabaseFormat, SqlConnection
from headrace.serving.checksums import REMEDY
from headrace.serving.store_migrations import add_checksums

WRITER = "writer"  # the key in `_meta` of the token of the current writer

_TABLES = """
CREATE TABLE IF NOT EXISTS _streams (
  name TEXT PRIMARY KEY, plan TEXT NOT NULL, boundary TEXT NOT NULL, generation INTEGER NOT NULL,
  committed_at INTEGER, promoted_at INTEGER, late INTEGER NOT NULL DEFAULT 0,
  listened_at INTEGER, marks TEXT NOT NULL, boundary_highs TEXT NOT NULL,
  boundary_marks TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS _progress (
  stream TEXT, partition INTEGER, next_offset INTEGER NOT NULL, high_us INTEGER, heard_at INTEGER,
  PRIMARY KEY (stream, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _groups (
  stream TEXT, number INTEGER, upper TEXT NOT NULL, opened_at INTEGER NOT NULL,
  closed INTEGER NOT NULL, highs TEXT NOT NULL, marks TEXT NOT NULL,
  PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _tables (
  name TEXT PRIMARY KEY, version TEXT NOT NULL, loaded_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _table_rows (name TEXT PRIMARY KEY, rows BLOB NOT NULL,
  checksum INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _provisional (
  version TEXT, number INTEGER, count INTEGER NOT NULL,
  PRIMARY KEY (version, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _epochs (
  number INTEGER PRIMARY KEY, stream TEXT NOT NULL, lower TEXT NOT NULL, upper TEXT NOT NULL,
  events INTEGER, late INTEGER, duplicates INTEGER, dead_letters INTEGER,
  started_at INTEGER, committed_at INTEGER);
CREATE TABLE IF NOT EXISTS _shed (
  stream TEXT, number INTEGER, lower TEXT NOT NULL, upper TEXT NOT NULL, decision TEXT NOT NULL,
  events INTEGER NOT NULL, total INTEGER NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _views (
  name TEXT, version TEXT, stream TEXT, plan TEXT NOT NULL, state TEXT NOT NULL,
  since TEXT NOT NULL,
  PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, version TEXT NOT NULL, layer TEXT NOT NULL,
  part TEXT NOT NULL, number INTEGER NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL,
  count INTEGER NOT NULL, rows BLOB NOT NULL, checksum INTEGER);
CREATE INDEX IF NOT EXISTS _runs_layers ON _runs (version, layer, part, number);
CREATE TABLE IF NOT EXISTS _disorder (
  version TEXT PRIMARY KEY, newest INTEGER NOT NULL, provisional INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _generations (
  stream TEXT, number INTEGER, boundary TEXT NOT NULL, promoted_at INTEGER NOT NULL,
  audits TEXT NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _sinks (
  name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, sequence INTEGER NOT NULL,
  watermark_us INTEGER, dropped INTEGER NOT NULL, begun TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS _sink_rows (
  sink TEXT, key TEXT, told TEXT NOT NULL, PRIMARY KEY (sink, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _outbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, key TEXT NOT NULL, sink TEXT,
  rule TEXT, alerts TEXT, body BLOB, state TEXT NOT NULL, attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL, reason TEXT, ended_at INTEGER, queued_at INTEGER NOT NULL,
  UNIQUE (queue, key));
CREATE INDEX IF NOT EXISTS _outbox_due ON _outbox (queue, due_at) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS _outbox_rules ON _outbox (rule) WHERE rule IS NOT NULL;
CREATE INDEX IF NOT EXISTS _outbox_ages ON _outbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _rules (
  name TEXT, version INTEGER, text TEXT NOT NULL, state TEXT NOT NULL, kept INTEGER NOT NULL,
  changed_at INTEGER NOT NULL, changed_by TEXT NOT NULL,
  PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _looks (
  rule TEXT PRIMARY KEY, version INTEGER NOT NULL, since TEXT NOT NULL, position TEXT, marks TEXT,
  generation INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _alerts (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rule TEXT NOT NULL,
  version INTEGER NOT NULL, row_key TEXT NOT NULL, severity TEXT NOT NULL, body TEXT NOT NULL,
  event_time INTEGER NOT NULL, per TEXT NOT NULL, raised_at INTEGER NOT NULL,
  raised_by TEXT NOT NULL, position TEXT NOT NULL, quiet TEXT, suppressed_by TEXT,
  missed INTEGER NOT NULL, withdrawn_at INTEGER, left_at INTEGER, acknowledged_by TEXT,
  acknowledged_at INTEGER, note TEXT, arrived_at INTEGER);
CREATE INDEX IF NOT EXISTS _alerts_rows ON _alerts (rule, row_key);
CREATE INDEX IF NOT EXISTS _alerts_times ON _alerts (rule, per, event_time);
CREATE INDEX IF NOT EXISTS _alerts_ages ON _alerts (raised_at);
CREATE VIEW IF NOT EXISTS _ledger AS SELECT id, rule, version, severity,
  CASE WHEN acknowledged_at IS NOT NULL THEN 'acknowledged' ELSE coalesce(quiet, 'open') END state,
  body, event_time, raised_at, raised_by, suppressed_by, missed, withdrawn_at, acknowledged_by,
  acknowledged_at, note, number FROM _alerts;
CREATE TABLE IF NOT EXISTS _mutes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, keys TEXT NOT NULL,
  until_us INTEGER NOT NULL, muted_by TEXT NOT NULL, muted_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS _removed (
  what TEXT, name TEXT, kind TEXT, count INTEGER NOT NULL,
  PRIMARY KEY (what, name, kind)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _watches (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, text TEXT NOT NULL,
  shape TEXT NOT NULL, constants TEXT NOT NULL, severity TEXT NOT NULL,
  destinations TEXT NOT NULL, until_us INTEGER, matches_max INTEGER, kept INTEGER NOT NULL,
  added_at INTEGER NOT NULL, added_by TEXT NOT NULL, lower TEXT, upper TEXT,
  state TEXT NOT NULL, matches INTEGER NOT NULL, ended_at INTEGER, why TEXT);
CREATE INDEX IF NOT EXISTS _watches_names ON _watches (lower(name));
CREATE INDEX IF NOT EXISTS _watches_shapes ON _watches (shape, state);
CREATE INDEX IF NOT EXISTS _watches_open ON _watches (shape) WHERE upper IS NULL;
CREATE INDEX IF NOT EXISTS _watches_ends ON _watches (until_us) WHERE state = 'active';
CREATE TABLE IF NOT EXISTS _watch_looks (
  shape TEXT PRIMARY KEY, position TEXT NOT NULL, marks TEXT NOT NULL,
  generation INTEGER NOT NULL) WITHOUT ROWID;
"""


def _fence(db: SqlConnection) -> None:
    """A running process of an earlier Headrace would write rows of the old format."""
    db.execute("UPDATE _meta SET value = CAST(value AS INTEGER) + 1 WHERE key = ?", (WRITER,))


STORE = DatabaseFormat(
    "store",
    _TABLES,
    remedy=REMEDY,
    migrations=(add_checksums,),
    fence=_fence,
)
