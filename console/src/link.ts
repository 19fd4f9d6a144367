/** Whether the server answers, and what may still be said if it does not.
 *
 * `live` hears the server, `asking` gets answers from it; in every other state nothing that was
 * heard before is shown as if it were so now: names stay, states and rates are not known.
 * tests/link.test.ts checks both.
 */

import { store } from "./store";
import type { StatusReport, Topology } from "./wire";

export interface Link {
  state: "connecting" | "live" | "asking" | "lost";
  since: number; // when it became so; of `lost`, when the server was there last
  reason: string;
}

export type News = "heard" | "closed" | "answered" | { failed: string };

export const link = store<Link>({ state: "connecting", since: Date.now(), reason: "" });

export const connected = ({ state }: Link): boolean => state === "live" || state === "asking";

/** What becomes of the link. A question that fails or is answered says nothing while we hear. */
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

/** For how long it has been so, in whole seconds. */
export const lasting = ({ since }: Link, at = Date.now()): number =>
  Math.max(1000, Math.round((at - since) / 1000) * 1000);

export const tell = (news: News): void => link.update((now) => after(now, news, Date.now()));

export const NOT_CONNECTED = "not connected";

/** The status of a project that is not heard of: what it consists of. */
export function stillStatus(of: StatusReport, reason: string): StatusReport {
  return {
    ...of,
    state: NOT_CONNECTED,
    reason,
    problems: [],
    views: of.views.map((view) => ({ ...view, state: NOT_CONNECTED, differences: null })),
  };
}

/** The topology of a project that is not heard of: its nodes and edges. */
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
