/** All requests of the console to the server. A GET request is sent by its name: paths, parameters and
 *  responses are in wire.ts; the paths of all other requests are here.
 *
 * An unsuccessful response becomes a Problem with the server's four fields. 401 changes `session`,
 * and the login page is shown.
 */

import { readDate } from "./clock";
import { parse } from "./json";
import { store } from "./store";
import {
  type Alert,
  type Answer,
  type AuditLog,
  type AuditResults,
  type CommandResult,
  type ErrorBody,
  type EventPage,
  type Grant,
  type LateAnswer,
  type MuteStatus,
  type NewToken,
  type OkResponse,
  PATHS,
  type QueryCancellation,
  type QueryPlan,
  type Questions,
  type RebuildResult,
  type Replay,
  type SendReceipt,
  type SessionReport,
  type SessionRequest,
  type Token,
  type TokenRequest,
  type User,
  type Why,
} from "./wire";

/** An error of the server: the same four fields everywhere. */
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

export type SessionState = "unknown" | "open" | "needed";
/** Whether the browser is authenticated; `needed` shows the login page. */
export const session = store<SessionState>("unknown");

type Param = string | number | boolean;
type Params = Record<string, Param | Param[] | null | undefined>;

export function address(path: string, params: Params = {}): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      // An empty text is a value, such as a key of a view.
      if (one !== null && one !== undefined) asked.append(name, String(one));
    }
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
    throw new Problem(
      0,
      "Unreachable",
      "the server does not answer",
      null,
      "is the project running?",
    );
  }
  readDate(response.headers.get("Date"));
  if (response.status === 401) session.set("needed");
  if (response.ok) return response;
  throw await problem(response);
}

async function problem(response: Response): Promise<Problem> {
  try {
    const said = (await response.json()) as Partial<ErrorBody>;
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
  return read<T>(await ask(url, { signal }));
}

const read = async <T>(answer: Response): Promise<T> => parse(await answer.text()) as T;

async function post<T>(url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const headers = { "Content-Type": "application/json" };
  return read<T>(await ask(url, { method: "POST", headers, signal, ...sent }));
}

/** A row of an answer. */
export type Row = Answer["rows"][number];

/** A filter of the audit log; the words may occur anywhere in an entry. */
export interface EntriesWanted {
  limit: number;
  before?: string;
  user?: string;
  decision?: string;
  what?: string;
  find?: string;
}

/** A filter of the rows of a view: windows from a time on, in an order such as "-hits". */
export type ViewQuestion = { from?: string; limit?: number; order?: string };

/** The arguments of a GET request: its parameters, if some are required, and a signal. */
type Given<K extends keyof Questions> =
  Record<never, never> extends Questions[K]["asked"]
    ? [asked?: Questions[K]["asked"], signal?: AbortSignal]
    : [asked: Questions[K]["asked"], signal?: AbortSignal];

/** The URL of a GET request: parameters of its path, and the others as its query. */
export function questionAddress(name: keyof Questions, asked: Params): string {
  const rest = { ...asked };
  const path = PATHS[name].replace(/{(\w+)}/g, (_, field: string) => {
    const value = rest[field];
    delete rest[field];
    return segment(String(value));
  });
  return address(path, rest);
}

export const api = {
  /** Any GET request, by its name. */
  ask: <K extends keyof Questions>(name: K, ...[asked, signal]: Given<K>) =>
    get<Questions[K]["answer"]>(questionAddress(name, { ...asked }), signal),

  view: (name: string, q: ViewQuestion = {}, signal?: AbortSignal) =>
    get<Answer>(address(`views/${segment(name)}`, q), signal),
  late: (name: string, limit = 50) =>
    get<LateAnswer>(address(`views/${segment(name)}/late`, { limit })),
  why: (name: string, keys: Params) => get<Why>(address(`views/${segment(name)}/why`, keys)),
  replay: (name: string, keys: Params) =>
    get<Replay>(address(`views/${segment(name)}/replay`, keys)),
  rebuild: (name: string) => post<RebuildResult>(address(`views/${segment(name)}/rebuild`)),
  audit: (view?: string) => post<AuditResults>(address("audit"), view ? { view } : {}),

  events: (stream: string, params: URLSearchParams) =>
    get<EventPage>(`${address(`streams/${segment(stream)}/events`)}?${params.toString()}`),
  send: async (stream: string, text: string) => {
    const headers = { "Content-Type": "application/octet-stream" };
    const url = address(`streams/${segment(stream)}/events`);
    return read<SendReceipt>(await ask(url, { method: "POST", headers, body: text }));
  },

  sql: (sql: string, limit: number, id: string, signal?: AbortSignal) =>
    post<Answer>(address("sql"), { sql, limit, id }, signal),
  plan: (sql: string) => post<QueryPlan>(address("sql/plan"), { sql }),
  cancel: (id: string) => post<QueryCancellation>(address(`sql/${segment(id)}/cancel`)),
  /** The answer as a file of this media type. */
  export: async (sql: string, media: string) => {
    const headers = { "Content-Type": "application/json", Accept: media };
    return (
      await ask(address("sql"), { method: "POST", headers, body: JSON.stringify({ sql }) })
    ).blob();
  },

  acknowledge: (id: string, note: string) =>
    post<Alert>(address(`alerts/${segment(id)}/ack`), note ? { note } : {}),
  mute: (rule: string, length: string) =>
    post<MuteStatus>(address(`rules/${segment(rule)}/mute`), { for: length }),

  command: (name: string, verb: string) =>
    post<CommandResult>(address(`jobs/${segment(name)}/${verb}`)),
  rollback: (name: string, version: number) =>
    post<CommandResult>(address(`jobs/${segment(name)}/rollback`, { version })),
  /** A project as a gzipped tar: a new job, or the next version of an existing one. */
  submit: async (name: string, project: Blob, place: Params = {}, again = false) => {
    const url = again
      ? address(`jobs/${segment(name)}/versions`, place)
      : address("jobs", { name, ...place });
    const headers = { "Content-Type": "application/gzip" };
    return read<CommandResult>(await ask(url, { method: "POST", headers, body: project }));
  },

  addUser: (name: string, role: string | null) => post<User>(address("users"), { name, role }),
  removeUser: (name: string) => post<OkResponse>(address(`users/${segment(name)}/remove`)),
  grant: (user: string, may: string, on: string) =>
    post<Grant>(address("grants"), { user, may, on }),
  takeBack: (user: string, may: string, on: string) =>
    post<OkResponse>(address("grants/remove"), { user, may, on }),
  createToken: (asked: TokenRequest) => post<NewToken>(address("tokens"), asked),
  revokeToken: (id: string) => post<Token>(address(`tokens/${segment(id)}/revoke`)),
  auditLog: (wanted: EntriesWanted) => get<AuditLog>(address("audit-log", { ...wanted })),

  openapi: () => get<{ paths: Record<string, unknown>; info: { version: string } }>("openapi.json"),
  login: (credentials: SessionRequest) => post<SessionReport>(address("session"), credentials),
  logout: () => post<OkResponse>(address("session/end")),
};
