/** The state of the connection to the server, and what is shown without one.
 *
 * `live` receives its event stream, `asking` polls it; in all other states earlier data is not shown
 * as current: names stay, states and rates are unknown.
 * tests/link.test.ts checks both.
 */

import { store } from "./store";
import type { ProjectStatus, Topology } from "./wire";

export interface Link {
  state: "connecting" | "live" | "asking" | "lost";
  since: number; // when the state began; for `lost`, when the server last responded
  reason: string;
}

export type News = "heard" | "closed" | "answered" | { failed: string };

export const link = store<Link>({ state: "connecting", since: Date.now(), reason: "" });

export const connected = ({ state }: Link): boolean => state === "live" || state === "asking";

/** The next state. The result of a request does not matter while the event stream is open. */
export function after(now: Link, news: News, at: number): Link {
  if (news === "heard") return to(now, "live", at);
  if (news === "closed") return now.state === "live" ? to(now, "connecting", at) : now;
  if (now.state === "live") return now;
  if (news === "answered") return to(now, "asking", at);
  return to(now, "lost", now.state === "connecting" ? now.since : at, news.failed);
}

function to(now: Link, state: Link["state"], at: number, reason = ""): Link {
  return now.state === state && now.reason === reason
    ? now
    : { state, since: now.state === state ? now.since : at, reason };
}

/** How long the state has lasted, in whole seconds. */
export const lasting = ({ since }: Link, at = Date.now()): number =>
  Math.max(1000, Math.round((at - since) / 1000) * 1000);

export const tell = (news: News): void => link.update((now) => after(now, news, Date.now()));

export const NOT_CONNECTED = "not connected";

/** The status of a project without a connection: names stay, and no alert is known to be open. */
export function stillStatus(of: ProjectStatus, reason: string): ProjectStatus {
  return {
    ...of,
    state: NOT_CONNECTED,
    reason,
    problems: [],
    views: of.views.map((view) => ({ ...view, state: NOT_CONNECTED, differences: null })),
    rules: of.rules.map((rule) => ({ ...rule, numbers: { ...rule.numbers, open: 0 } })),
  };
}

/** The topology of a project without a connection: only its nodes and edges. */
export function stillTopology(of: Topology): Topology {
  return {
    ...of,
    nodes: of.nodes.map(({ id, kind, name }) => ({
      id,
      kind,
      name,
      health: "idle",
      reason: NOT_CONNECTED,
      rate: null,
      lag_events: null,
      lag_ms: null,
      watermark_gap_ms: null,
      saturation: null,
      detail: {},
      cause: null,
    })),
    edges: of.edges.map((edge) => ({ ...edge, rate: null })),
  };
}
