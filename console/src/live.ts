/** What the server says by itself: one connection, shared by all screens.
 *
 * Screens name the views they show; the connection is opened again when that set has changed. While
 * there is none, as behind a proxy that holds streams back, the server is asked every two seconds.
 */

import { type Alert, address, api, Problem, type Status, session, type Topology } from "./api";
import { type Listening, listen, type Message } from "./sse";
import { store } from "./store";

export type Link = { state: "connecting" | "live" | "asking" | "lost"; since: number };

export const status = store<Status | null>(null);
export const topology = store<Topology | null>(null);
/** Counts what is heard of alerts; whoever lists them asks again. */
export const alertsHeard = store<Alert[]>([]);
export const link = store<Link>({ state: "connecting", since: Date.now() });
/** Ticks once a second, for relative times. */
export const now = store(Date.now());

const TOPICS = ["status", "topology", "alerts"];
const ASK_MS = 2000;
const CALM_MS = 50; // screens come and go together; the connection is opened once
const watchers = new Map<string, Set<() => void>>();
let listening: Listening | null = null;
let openedFor = "";
let planned = 0;
let started = false;

export function start(): void {
  if (started) return;
  started = true;
  setInterval(() => {
    if (!document.hidden) now.set(Date.now());
  }, 1000);
  reopen();
  void poll();
}

/** While nothing is heard, ask. */
async function poll(): Promise<void> {
  if (link.get().state !== "live" && session.get() === "open" && !document.hidden) {
    try {
      status.set(await api.status());
      linked("asking");
      topology.set(await api.topology());
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 0) linked("lost");
    }
    watchers.forEach((own) => own.forEach((heard) => heard()));
  }
  setTimeout(poll, ASK_MS);
}

/** Be told when a view's answer has changed, until the returned function is called. */
export function watchView(name: string, heard: () => void): () => void {
  const own = watchers.get(name) ?? new Set();
  watchers.set(name, own.add(heard));
  reopen();
  return () => {
    own.delete(heard);
    if (!own.size) watchers.delete(name);
  };
}

function reopen(): void {
  clearTimeout(planned);
  planned = window.setTimeout(() => {
    const topics = [...TOPICS, ...[...watchers.keys()].sort().map((name) => `view:${name}`)].join(",");
    if (topics === openedFor || !started) return;
    openedFor = topics;
    listening?.close();
    listening = listen(address("live", { topics }), { message: hear, open: opened, refused });
  }, CALM_MS);
}

function opened(open: boolean): void {
  if (open) linked("live");
  else if (link.get().state === "live") linked("connecting");
}

function linked(state: Link["state"]): void {
  if (link.get().state !== state) link.set({ state, since: Date.now() });
}

function refused(code: number): boolean {
  if (code === 401) session.set("needed");
  return code === 401;
}

function hear({ event, data }: Message): void {
  if (event === "status") status.set(JSON.parse(data) as Status);
  else if (event === "topology") topology.set(JSON.parse(data) as Topology);
  else if (event === "alerts") alertsHeard.set((JSON.parse(data) as { alerts: Alert[] }).alerts);
  else if (event.startsWith("view:")) watchers.get(event.slice(5))?.forEach((heard) => heard());
}
