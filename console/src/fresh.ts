/** The badges of freshness and exactness of an answer. tests/fresh.test.ts checks them.
 *
 * An answer is exact only if it contains every event of the log; otherwise it is `n behind`.
 * The age is the server's number at the time of the response plus the time that has passed since, so
 * no two clocks are compared. Without a connection nothing is fresh.
 */

import { count, duration, percent } from "./format";
import type { Answer, AsOf } from "./wire";

const MOVING_MS = 10_000;

export interface Said {
  tone: "ok" | "warn" | "idle";
  text: string;
}

/** Determined by the oldest of the answer's streams. */
export function oldest(answer: Answer): AsOf | null {
  const all = Object.values(answer.as_of).filter((as) => as.age_ms !== null);
  return all.reduce<AsOf | null>(
    (most, as) => (most && most.age_ms! >= as.age_ms! ? most : as),
    null,
  );
}

export function freshness(answer: Answer, passedMs: number, connected: boolean): Said {
  const as = oldest(answer);
  if (!as) return { tone: "idle", text: "no epoch yet" };
  const age = as.age_ms! + passedMs;
  const old = `${duration(Math.round(age / 1000) * 1000)} old`;
  if (!connected) return { tone: "idle", text: `at least ${old}` };
  if (age < 2000) return { tone: "ok", text: "fresh" };
  return { tone: age < MOVING_MS ? "ok" : age < 60_000 ? "warn" : "idle", text: old };
}

export function exactness(answer: Answer, connected: boolean): Said {
  const estimates = Object.values(answer.columns).filter((column) => !column.exact);
  const streams = Object.values(answer.as_of);
  const provisional = streams.some((as) => as.provisional);
  const behind = streams.reduce((sum, as) => sum + (as.behind ?? 0), 0);
  const most = Math.max(0, ...estimates.map((column) => column.error ?? 0));
  if (!connected) return { tone: "idle", text: "not connected" };
  const rough = provisional ? "provisional" : most ? `± ${percent(most)}` : "estimated";
  const said = [
    ...(provisional || estimates.length ? [rough] : []),
    ...(behind ? [`${count(behind)} behind`] : []),
  ];
  // Some events are always on their way in a busy stream; that is no warning while it moves.
  const moving = said.length === 1 && behind && (oldest(answer)?.age_ms ?? Infinity) < MOVING_MS;
  if (!said.length) return { tone: "ok", text: "exact" };
  return { tone: moving ? "ok" : "warn", text: said.join(", ") };
}
