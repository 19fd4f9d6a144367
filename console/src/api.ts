/** Everything the console asks of the server: the one place where a route's path is written.
 *
 * An answer that is no success becomes a Problem with the server's four fields. 401 is told to
 * whoever watches `session`, and the login page is shown.
 */

import { store } from "./store";
import type { Who } from "./who";

// --- what comes over the wire -------------------------------------------------------------------

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
  sinks: { name: string; view: string; into: string; target: string; guarantee: string; origin: string }[];
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
  reasons: { reason: string; events: number; newest_at: string; partition: number; offset: number }[];
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

/** What the server says is wrong: the same four fields everywhere. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly condition: string,
    message: string,
    readonly detail: string | null = null,
    readonly hint: string | null = null,
    readonly origin: string | null = null,
  ) {
    super(message);
  }
}

// --- asking --------------------------------------------------------------------------------------

export type SessionState = "unknown" | "open" | "needed";
/** Whether the server lets us in; `needed` shows the login page. */
export const session = store<SessionState>("unknown");

type Params = Record<string, string | number | null | undefined>;

export function address(path: string, params: Params = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") asked.set(name, String(value));
  }
  const text = asked.toString();
  return `v1/${path}${text ? `?${text}` : ""}`;
}

const segment = encodeURIComponent;

async function ask(url: string, options: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "Unreachable", "the server does not answer", null, "is the project running?");
  }
  if (response.status === 401) session.set("needed");
  if (response.ok) return response;
  throw await problem(response);
}

async function problem(response: Response): Promise<Problem> {
  try {
    const said = (await response.json()) as Record<string, string | null>;
    return new Problem(
      response.status,
      said.condition ?? "Failed",
      said.message ?? `the server answered ${response.status}`,
      said.detail,
      said.hint,
      said.origin,
    );
  } catch {
    return new Problem(response.status, "Failed", `the server answered ${response.status}`);
  }
}

async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(url, { signal })).json()) as T;
}

async function post<T>(url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { "Content-Type": "application/json" };
  return (await (await ask(url, { method: "POST", headers, signal, ...sent })).json()) as T;
}

export interface ViewQuestion {
  keys?: Record<string, string>;
  from?: string;
  to?: string;
  limit?: number;
}

export const api = {
  status: () => get<Status>(address("status")),
  topology: () => get<Topology>(address("topology")),
  catalog: () => get<Catalog>(address("catalog")),
  lineage: () => get<Lineage>(address("lineage")),
  quality: () => get<Quality>(address("quality")),
  epochs: (stream?: string, limit?: number) => get<Epochs>(address("epochs", { stream, limit })),
  system: () => get<System>(address("system")),

  view: (name: string, q: ViewQuestion = {}, signal?: AbortSignal) =>
    get<Answer>(
      address(`views/${segment(name)}`, { ...q.keys, from: q.from, to: q.to, limit: q.limit }),
      signal,
    ),
  about: (name: string) => get<About>(address(`views/${segment(name)}/about`)),
  late: (name: string, limit = 50) =>
    get<{ windows: LateWindow[]; truncated: boolean }>(
      address(`views/${segment(name)}/late`, { limit }),
    ),
  why: (name: string, keys: Params) => get<Why>(address(`views/${segment(name)}/why`, keys)),
  replay: (name: string, keys: Params) =>
    get<Replay>(address(`views/${segment(name)}/replay`, keys)),
  rebuild: (name: string) =>
    post<{ view: string; generation: number; rows: number; differences: number | null }>(
      address(`views/${segment(name)}/rebuild`),
    ),
  audit: (view?: string) =>
    post<{ audits: AuditResult[] }>(address("audit"), view ? { view } : {}),

  events: (stream: string, params: URLSearchParams) =>
    get<Events>(`${address(`streams/${segment(stream)}/events`)}?${params.toString()}`),
  trace: (stream: string, partition: number, offset: number) =>
    get<EventTrace>(address(`streams/${segment(stream)}/events/${partition}/${offset}`)),
  deadLetters: (stream: string, limit = 100) =>
    get<{ dead_letters: DeadLetter[] }>(
      address(`streams/${segment(stream)}/dead-letters`, { limit }),
    ),
  send: async (stream: string, text: string) => {
    const headers = { "Content-Type": "application/octet-stream" };
    const url = address(`streams/${segment(stream)}/events`);
    return (await (await ask(url, { method: "POST", headers, body: text })).json()) as Accepted;
  },

  sql: (sql: string, limit: number, id: string, signal?: AbortSignal) =>
    post<Answer>(address("sql"), { sql, limit, id }, signal),
  plan: (sql: string) => post<QueryPlan>(address("sql/plan"), { sql }),
  cancel: (id: string) => post<{ stopped: boolean }>(address(`sql/${segment(id)}/cancel`)),
  /** The answer as a file of this media type. */
  export: async (sql: string, media: string) => {
    const headers = { "Content-Type": "application/json", Accept: media };
    return (await ask(address("sql"), { method: "POST", headers, body: JSON.stringify({ sql }) })).blob();
  },

  rules: () => get<{ rules: RuleStatus[] }>(address("rules")),
  alerts: (params: Params = {}) => get<{ alerts: Alert[] }>(address("alerts", params)),
  alert: (id: string) => get<Alert>(address(`alerts/${segment(id)}`)),
  acknowledge: (id: string, note: string) =>
    post<Alert>(address(`alerts/${segment(id)}/ack`), note ? { note } : {}),
  mute: (rule: string, length: string) =>
    post<{ until: string }>(address(`rules/${segment(rule)}/mute`), { for: length }),

  jobs: () => get<{ jobs: Job[] }>(address("jobs")),
  job: (name: string) => get<Job>(address(`jobs/${segment(name)}`)),
  jobVersions: (name: string) =>
    get<{ current: number; versions: JobVersion[] }>(address(`jobs/${segment(name)}/versions`)),
  jobLogs: (name: string, tail: number) =>
    get<{ lines: string[] }>(address(`jobs/${segment(name)}/logs`, { tail })),
  command: (name: string, verb: string) => post<unknown>(address(`jobs/${segment(name)}/${verb}`)),
  rollback: (name: string, version: number) =>
    post<unknown>(address(`jobs/${segment(name)}/rollback`, { version })),
  /** A project as a gzipped tar: a new job, or the next version of one that there is. */
  submit: async (name: string, project: Blob, place: Params = {}, again = false) => {
    const url = again ? address(`jobs/${segment(name)}/versions`, place) : address("jobs", { name, ...place });
    return (await ask(url, { method: "POST", headers: { "Content-Type": "application/gzip" }, body: project })).json();
  },
  domain: () => get<{ instances: Instance[] }>(address("domain")),

  users: () => get<{ users: User[] }>(address("users")),
  addUser: (name: string, role: string | null) => post<User>(address("users"), { name, role }),
  removeUser: (name: string) => post<{ ok: boolean }>(address(`users/${segment(name)}/remove`)),
  grants: () => get<{ grants: Grant[] }>(address("grants")),
  grant: (user: string, may: string, on: string) => post<Grant>(address("grants"), { user, may, on }),
  takeBack: (user: string, may: string, on: string) =>
    post<{ ok: boolean }>(address("grants/remove"), { user, may, on }),
  tokens: () => get<{ tokens: Token[] }>(address("tokens")),
  createToken: (asked: { user: string; name: string; for: string; may: string[]; on: string[] }) =>
    post<{ token: Token; secret: string }>(address("tokens"), asked),
  revokeToken: (id: string) => post<Token>(address(`tokens/${segment(id)}/revoke`)),
  auditLog: (user: string, limit: number) =>
    get<{ entries: AuditEntry[] }>(address("audit-log", { user, limit })),

  openapi: () => get<{ paths: Record<string, unknown>; info: { version: string } }>("openapi.json"),
  whoami: () => get<Who>(address("session")),
  login: (proof: { token: string } | { code: string }) => post<Who>(address("session"), proof),
  logout: () => post<{ ok: boolean }>(address("session/end")),
};
