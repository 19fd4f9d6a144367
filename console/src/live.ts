/** The live connection: one event stream from the server, shared by all screens.
 *
 * Without one, as behind a proxy that buffers streams, the server is polled every two seconds; so is
 * a server of jobs, which has no event stream. If polling fails too, the last state is no longer
 * shown as current. A view on the screen is requested again after a commit: `moved` announces it.
 */

import { address, api, Problem, session } from "./api";
import { serverNow } from "./clock";
import { parse } from "./json";
import { connected, link, stillStatus, stillTopology, tell } from "./link";
import { type Listening, listen, type Message } from "./sse";
import { store } from "./store";
import type { Alert, Alerts, ErrorBody, ProjectStatus, Topology } from "./wire";

export const status = store<ProjectStatus | null>(null);
export const topology = store<Topology | null>(null);
/** The newest alerts; pages with other alerts reload when they change. */
export const alertsHeard = store<Alert[]>([]);
/** The server's time; ticks once a second, for relative times. */
export const now = store(serverNow());

const ALL = "status,topology,alerts";
const WITHOUT_ALERTS = "status,topology";
const ASK_MS = 2000;
/** The time-out of a poll. */
const PATIENCE_MS = 5000;
let listening: Listening | null = null;
let ticking = false;
let asking = false;

/** The positions of all streams as one text; it changes when any answer may have changed. It includes
 * the watermark, which can advance without an event, and the end of the log, because an answer says
 * how many events it is behind. */
export const moved = store("");
status.watch((seen) =>
  moved.set(
    seen
      ? JSON.stringify(
          seen.streams.map((one) => [one.end, one.position, one.watermark, one.generation]),
        )
      : "",
  ),
);

link.watch((to) => {
  if (connected(to)) return;
  status.update((seen) => seen && stillStatus(seen, to.reason));
  topology.update((seen) => seen && stillTopology(seen));
});

setInterval(() => {
  if (!document.hidden) now.set(serverNow());
}, 1000);

/** Open the event stream of a project, or poll a server of jobs; again after a login. */
export function start(project: boolean): void {
  if (project) hearAll(ALL);
  if (ticking) return;
  ticking = true;
  setInterval(() => void ask(project), ASK_MS);
  document.addEventListener("visibilitychange", () => void ask(project));
  // Poll at once, to know whether the server is down or only the stream has ended.
  link.watch(({ state }) => void (state === "connecting" && ask(project)));
  void ask(project);
}

/** Disconnect and clear all data: the next user may be allowed to see less. */
export function stop(): void {
  listening?.close();
  status.set(null);
  topology.set(null);
  alertsHeard.set([]);
  tell("closed");
}

function hearAll(topics: string): void {
  listening?.close();
  const refused = (code: number) => refusedFor(topics, code);
  const open = (is: boolean) => tell(is ? "heard" : "closed");
  listening = listen(address("live", { topics }), { message: hear, open, refused });
}

/** Poll while no message arrives; one request at a time. */
async function ask(project: boolean): Promise<void> {
  if (asking || link.get().state === "live" || session.get() !== "open" || document.hidden) return;
  asking = true;
  const patience = AbortSignal.timeout(PATIENCE_MS);
  try {
    if (project) {
      const seen = await api.ask("status", {}, patience);
      tell("answered");
      status.set(seen);
      const still = () => topology.update((last) => last && stillTopology(last));
      await api.ask("topology", {}, patience).then(topology.set, still);
    } else {
      await api.ask("session", {}, patience);
      tell("answered");
    }
  } catch (error) {
    const known = error instanceof Problem && error.status !== 401;
    if (known) tell({ failed: error.message });
  }
  asking = false;
}

/** Only callers who may read the whole job can subscribe to alerts; others get the rest. */
function refusedFor(topics: string, code: number): boolean {
  if (code === 401) session.set("needed");
  if (code === 403 && topics === ALL) {
    hearAll(WITHOUT_ALERTS);
    return true;
  }
  return code === 401;
}

type Told<T> = T | { error: ErrorBody };

function hear({ event, data }: Message): void {
  const told = parse(data);
  if (event === "status")
    status.update((seen) => known(told as Told<ProjectStatus>, seen, stillStatus));
  else if (event === "topology")
    topology.update((seen) => known(told as Told<Topology>, seen, stillTopology));
  else if (event === "alerts")
    alertsHeard.update((seen) => known(told as Told<Alerts>, null, () => null)?.alerts ?? seen);
}

/** The new state, with the last value of a part that could not be computed. */
function known<T>(
  told: Told<T>,
  seen: T | null,
  still: (seen: T, reason: string) => T | null,
): T | null {
  if (typeof told === "object" && told !== null && "error" in told)
    return seen && still(seen, told.error.message);
  return told as T;
}
