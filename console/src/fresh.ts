/** How fresh and how exact an answer is, as its badges say it. tests/fresh.test.ts checks it.
 *
 * The age is the server's own number when it answered, and the time that has passed here since then;
 * no two clocks are compared. Of a server that is not connected nothing is fresh.
 */

import { duration, percent } from "./format";
import type { Answer, AsOf } from "./wire";

export interface Said {
  tone: "ok" | "warn" | "idle";
  text: string;
}

/** The oldest of the streams behind an answer decides. */
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
