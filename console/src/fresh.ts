/** The badges of freshness and exactness of an answer. tests/fresh.test.ts checks them.
 *
 * The age is the server's number at the time of the response plus the time that has passed since, so
 * no two clocks are compared. Without a connection nothing is fresh.
 */

import { duration, percent } from "./format";
import type { Answer, AsOf } from "./wire";

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
  return { tone: age < 10_000 ? "ok" : age < 60_000 ? "warn" : "idle", text: old };
}

export function exactness(answer: Answer, connected: boolean): Said {
  const estimates = Object.values(answer.columns).filter((column) => !column.exact);
  const provisional = Object.values(answer.as_of).some((as) => as.provisional);
  const most = Math.max(0, ...estimates.map((column) => column.error ?? 0));
  if (!connected) return { tone: "idle", text: "not connected" };
  if (provisional) return { tone: "warn", text: "provisional" };
  if (!estimates.length) return { tone: "ok", text: "exact" };
  return { tone: "warn", text: most ? `± ${percent(most)}` : "estimated" };
}
