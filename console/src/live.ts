/** What the server says by itself: one connection, shared by all screens.
 *
 * While there is none, as behind a proxy that holds streams back, the server is asked every two
 * seconds. A view that is looked at is asked for again when a stream has moved: `moved` tells it.
 */

import { address, api, Problem, session } from "./api";
import { type Listening, listen, type Message } from "./sse";
import { store } from "./store";
import type { Alert, Alerts, StatusReport, Topology } from "./wire";

export type Link = { state: "connecting" | "live" | "asking" | "lost"; since: number };

export const status = store<StatusReport | null>(null);
export const topology = store<Topology | null>(null);
/** The newest alerts; whoever lists others asks again when they change. */
export const alertsHeard = store<Alert[]>([]);
export const link = store<Link>({ state: "connecting", since: Date.now() });
/** Ticks once a second, for relative times. */
export const now = store(Date.now());

const ALL = "status,topology,alerts";
const WITHOUT_ALERTS = "status,topology";
const ASK_MS = 2000;
let listening: Listening | null = null;

/** How far all streams have come, as one text; it changes when any answer may have changed. The
 * watermark is part of it, because what waits for it is found without an event. */
export const moved = store("");
status.watch((seen) =>
  moved.set(
    seen
      ? JSON.stringify(seen.streams.map((one) => [one.position, one.watermark, one.generation]))
      : "",
  ),
);

setInterval(() => {
  if (!document.hidden) now.set(Date.now());
}, 1000);

/** Begin to listen; again after a login. */
export function start(): void {
  if (!listening) void poll();
  hearAll(ALL);
}

/** Hear no more, and forget what was heard: the next one who signs in may see less. */
export function stop(): void {
  listening?.close();
  status.set(null);
  topology.set(null);
  alertsHeard.set([]);
  linked("connecting");
}

function hearAll(topics: string): void {
  listening?.close();
  const refused = (code: number) => refusedFor(topics, code);
  listening = listen(address("live", { topics }), { message: hear, open: opened, refused });
}

/** While nothing is heard, ask. */
async function poll(): Promise<void> {
  if (!live() && session.get() === "open" && !document.hidden) {
    try {
      status.set(await api.status());
      if (!live()) linked("asking");
      topology.set(await api.topology());
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 0) linked("lost");
    }
  }
  setTimeout(poll, ASK_MS);
}

const live = (): boolean => link.get().state === "live";

function opened(open: boolean): void {
  if (open) linked("live");
  else if (live()) linked("connecting");
}

function linked(state: Link["state"]): void {
  if (link.get().state !== state) link.set({ state, since: Date.now() });
}

/** Alerts are told to those who may read the whole job; the others hear the rest. */
function refusedFor(topics: string, code: number): boolean {
  if (code === 401) session.set("needed");
  if (code === 403 && topics === ALL) {
    hearAll(WITHOUT_ALERTS);
    return true;
  }
  return code === 401;
}

function hear({ event, data }: Message): void {
  const told = JSON.parse(data);
  // A state that could not be made is tried again by the server; what was seen last stays.
  if (told.error) return;
  if (event === "status") status.set(told as StatusReport);
  else if (event === "topology") topology.set(told as Topology);
  else if (event === "alerts") alertsHeard.set((told as Alerts).alerts);
}
