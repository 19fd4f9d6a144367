/** What comes over the wire, as docs/http.md says it. */

export type Value = unknown;
export type Row = Record<string, Value>;

export interface Balance {
  accepted: number;
  events: number;
  duplicates: number;
  dead_letters: number;
  in_log: number;
  off: number;
}

export interface StreamStatus {
  name: string;
  source: string;
  end: number[];
  position: number[];
  archived: number[];
  boundary: number[];
  generation: number;
  lag_events: number;
  late: number;
  watermark: string | null;
  balance: Balance;
  last_epoch_ms: number | null;
  problem: string | null;
  watermark_gap_ms: number | null;
  watermark_held_by: number | null;
  idle: { partition: number; since: string }[];
  shed: number;
}

export interface ViewStatus {
  name: string;
  kind: string;
  state: string;
  stream: string;
  rows: number;
  generation: number;
  differences: number | null;
}

export interface RuleNumbers {
  alerts: number;
  open: number;
  suppressed: number;
  muted: number;
  missed: number;
  withdrawn: number;
  waiting: number;
  failed: number;
}

export interface RuleStatus {
  name: string;
  version: number;
  state: string;
  severity: string;
  kept: boolean;
  changed_at: string;
  changed_by: string;
  text: string;
  numbers: RuleNumbers;
}

export interface Status {
  name: string;
  state: string;
  reason: string;
  started_at: string | null;
  url: string | null;
  streams: StreamStatus[];
  views: ViewStatus[];
  sinks: { name: string; view: string; into: string; waiting: number; delivered: number }[];
  rules: RuleStatus[];
}

export interface AsOf {
  generation: number;
  boundary: number[];
  position: number[];
  watermark: string | null;
  committed_at: string | null;
  age_ms: number | null;
  provisional?: boolean;
  sampled?: { share: number; shed: number };
  tables?: Record<string, string>;
}

export interface ColumnInfo {
  type: string;
  exact: boolean;
  error?: number;
  error_of?: string;
  cut?: boolean;
}

export interface Answer {
  rows: Row[];
  as_of: Record<string, AsOf>;
  columns: Record<string, ColumnInfo>;
  truncated: boolean;
}

export type Health = "ok" | "warn" | "bad" | "idle";

export interface Node {
  id: string;
  kind: string;
  name: string;
  health: Health;
  reason: string;
  rate: number | null;
  lag_events: number | null;
  lag_ms: number | null;
  watermark_gap_ms: number | null;
  saturation: number | null;
  detail: Record<string, number | string | null>;
  cause: string | null;
}

export interface Edge {
  source: string;
  target: string;
  rate: number | null;
}

export interface Topology {
  at: string;
  nodes: Node[];
  edges: Edge[];
}

export interface Column {
  name: string;
  type: string | null;
  nullable: boolean;
  key: boolean;
  exact: boolean;
  error: number | null;
  error_of: string | null;
  why: string | null;
}

export interface ViewVersion {
  id: string;
  state: string;
  since: number[];
  live_at: string | null;
}

export interface CatalogStream {
  name: string;
  kind: "declared" | "derived";
  columns: Column[];
  origin: string;
  sql: string | null;
  source: string | null;
  partitions: number | null;
  watermark: { column: string; delay_ms: number } | null;
  key: string | null;
  id: string | null;
  reads: string[];
}

export interface CatalogTable {
  name: string;
  columns: Column[];
  origin: string;
  format: string;
  location: string;
  version: string | null;
  loaded_at: string | null;
}

export interface CatalogView {
  name: string;
  kind: string;
  columns: Column[];
  origin: string;
  sql: string;
  stream: string;
  reads: string[];
  versions: ViewVersion[];
}

export interface CatalogRule {
  name: string;
  state: string;
  severity: string;
  origin: string;
  sql: string;
  columns: string[];
  reads: string[];
  actions: string[];
}

export interface Catalog {
  name: string;
  streams: CatalogStream[];
  tables: CatalogTable[];
  views: CatalogView[];
  rules: CatalogRule[];
  watches: { name: string; state: string; severity: string; sql: string; reads: string[] }[];
  sinks: {
    name: string;
    view: string;
    into: string;
    target: string;
    guarantee: string;
    origin: string;
  }[];
  functions: { name: string; kind: string; takes: string[] | null; returns: string | null }[];
  keywords: string[];
}

export interface AuditResult {
  view: string;
  compared: number;
  differences: number;
  examples: string[];
  note: string;
}

export interface Freshness {
  stream: string;
  position: number[];
  boundary: number[];
  end: number[];
  generation: number;
  lag_events: number;
  lag_ms: number | null;
  watermark: string | null;
  watermark_gap_ms: number | null;
  committed_at: string | null;
  promoted_at: string | null;
}

/** What a rebuild of a view has to do, and how far one is that was asked for. */
export interface Rebuild {
  state: "idle" | "waiting" | "running";
  asked_at: string | null;
  started_at: string | null;
  events: number;
  expected_ms: number | null;
}

export interface About {
  name: string;
  kind: string;
  sql: string;
  origin: string;
  explain: string;
  versions: ViewVersion[];
  columns: Column[];
  freshness: Freshness[];
  audit: AuditResult | null;
  audited_at: string | null;
  late: {
    windows: number;
    on_time: number;
    late: number;
    absorbed: number;
    waiting: number;
    late_by_max_ms: number | null;
    truncated: boolean;
  } | null;
  reads: string[];
  touches: string[];
  rebuild: Rebuild | null;
}

export interface LateWindow {
  key: Row;
  on_time: number;
  late: number;
  late_by_max_ms: number | null;
  late_by_mean_ms: number | null;
  absorbed: number;
  absorbed_by: number | null;
  waiting: number;
}

export interface Seen {
  stream: string;
  partition: number;
  offset: number;
  event_time: string | null;
  arrived_at: string;
  raw: string;
  late?: boolean;
  reason?: string | null;
}

export interface Why {
  view: string;
  key: Row;
  row: Row | null;
  events: number;
  listed: Seen[];
  left_out: { reason: string; events: number; listed: Seen[] }[];
  agrees: boolean;
  sentence: string;
}

export interface Step {
  what: string;
  number: number;
  at: string;
  position: number[];
  boundary: number[];
  events: number;
  late: number;
  shed: number;
  row: Row | null;
}

export interface Replay {
  steps: Step[];
  earlier: number;
  agrees: boolean;
  sentence: string;
}

export interface Alert {
  id: string;
  rule: string;
  version: number;
  severity: string;
  state: string;
  body: Row;
  event_time: string;
  raised_at: string;
  raised_by: string;
  missed: boolean;
  suppressed_by: string | null;
  withdrawn_at: string | null;
  acknowledged_by: string | null;
  acknowledged_at: string | null;
  note: string | null;
  deliveries: { action: string; state: string; attempts: number; reason: string | null }[];
}

export interface EventRecord {
  partition: number;
  offset: number;
  arrived_at: string;
  status: "event" | "duplicate" | "dead_letter";
  reason: string | null;
  event_time: string | null;
  late: boolean | null;
  lateness_ms: number | null;
  id: string | null;
  key: string | null;
  body: Row | null;
  raw: string;
  cut: boolean;
}

export interface Events {
  events: EventRecord[];
  next: string | null;
  scanned: number;
}

export interface EventTrace {
  event: EventRecord;
  epoch: { number: number; committed_at: string } | null;
  archived: boolean;
  generation: { number: number; committed_at: string } | null;
  views: { view: string; key: Row | null; row: Row | null; reason: string | null }[];
  alerts: Alert[];
}

export interface DeadLetter {
  partition: number;
  offset: number;
  arrived_at: string;
  reason: string;
  raw: string;
}

export interface StreamQuality {
  name: string;
  sampled: number;
  lateness: { up_to_ms: number | null; events: number }[];
  late: number;
  duplicates: number;
  dead_letters: number;
  reasons: {
    reason: string;
    events: number;
    newest_at: string;
    partition: number;
    offset: number;
  }[];
  undeclared: { name: string; events: number; share: number; type: string; example: string }[];
  nulls: { column: string; nulls: number; share: number; nullable: boolean }[];
  balance: Balance;
}

export interface Quality {
  at: string;
  streams: StreamQuality[];
}

export interface Epoch {
  number: number;
  stream: string;
  lower: number[];
  upper: number[];
  events: number;
  late: number;
  duplicates: number;
  dead_letters: number;
  started_at: string;
  committed_at: string;
  ms: number;
  phases: Record<string, number> | null;
}

export interface Generation {
  stream: string;
  number: number;
  boundary: number[];
  events: number | null;
  at: string;
  audits: AuditResult[];
}

export interface Epochs {
  epochs: Epoch[];
  generations: Generation[];
}

export interface Setting {
  name: string;
  value: string;
  default: string;
  meaning: string;
  changed: boolean;
  secret: boolean;
}

export interface System {
  at: string;
  process: { pid: number; memory_bytes: number | null; threads: number; uptime_s: number | null };
  spark: {
    running: boolean;
    master: string;
    version: string | null;
    memory: string;
    jvm_pid: number | null;
    jvm_memory_bytes: number | null;
  };
  disk: {
    path: string;
    free_bytes: number;
    total_bytes: number;
    state_bytes: number;
    parts: Record<string, number>;
    growth_bytes_per_hour: number | null;
    runway_hours: number | null;
  };
  versions: Record<string, string>;
  settings: Setting[];
}

export interface ColumnRef {
  object: string;
  column: string;
}

export interface Lineage {
  columns: { object: string; column: string; from: ColumnRef[] }[];
  touched_by: Record<string, string[]>;
}

export interface QueryPlan {
  by: "store" | "spark";
  relations: string[];
  sql: string;
  plan: string;
}

export interface Accepted {
  accepted: number;
  duplicates: number;
  conflicts: number;
  offsets: { partition: number; first_offset: number; next_offset: number }[];
}

export interface User {
  name: string;
  made_at: string;
  made_by: string;
}

export interface Grant {
  user: string;
  may: string; // a role or one operation
  on: string;
  made_at: string;
  made_by: string;
}

export interface Token {
  id: string;
  user: string;
  name: string;
  may: string[];
  on: string[];
  made_at: string;
  expires_at: string;
  revoked_at: string | null;
}

export interface AuditEntry {
  number: number;
  at: string;
  user: string;
  token: string;
  what: string;
  object: string;
  decision: "allowed" | "refused";
  request: string;
  detail: string;
}

/** Which entries of the audit log are asked for; the words may stand anywhere in them. */
export interface EntriesWanted {
  limit: number;
  before?: string;
  user?: string;
  decision?: string;
  what?: string;
  find?: string;
}

/** A job of a server of jobs. */
export interface Job {
  name: string;
  state: string; // starting, running, silent, restarting, stopping, paused, cancelled, failed
  reason: string;
  desired: "running" | "paused" | "cancelled";
  version: number;
  owner: string;
  place: { cores: number; memory: string; pool: string; tags: string[] };
  submitted_at: string;
  changed_at: string;
  pid: number | null;
  deaths: number; // since the last command
  last_death: { at: string; why: string } | null;
}

export interface JobVersion {
  number: number;
  digest: string;
  names: Record<string, string[]>; // streams, views, rules
  submitted_by: string;
  submitted_at: string;
}

export interface Instance {
  name: string;
  started_at: string;
  room: { cores: number; memory: number };
  cores_used: number;
  memory_used: number;
}
