/** The progress of a rebuild as text. Pure: tests/rebuild.test.ts. */

import { brief, duration, plural } from "./format";
import type { RebuildProgress, RebuildResult } from "./wire";

export interface Progress {
  share: number | null; // null: not known
  text: string;
}

export const underWay = (of: RebuildProgress | null | undefined): of is RebuildProgress =>
  Boolean(of && of.state !== "idle");

/** The progress, and the remaining time by the largest earlier build. */
export function progress(of: RebuildProgress, now: number): Progress {
  if (of.state === "waiting" || !of.started_at)
    return { share: null, text: "Waiting for the running build." };
  const passed = Math.max(0, now - Date.parse(of.started_at));
  const since = `Running for ${brief(passed)}, over ${plural(of.events, "event")}.`;
  if (of.expected_ms === null)
    return {
      share: null,
      text: `${since} Its duration is not known: nothing was built in this run yet.`,
    };
  const left = of.expected_ms - passed;
  if (left <= 0)
    return {
      share: 1,
      text: `${since} It takes longer than the ${duration(of.expected_ms)} that were expected.`,
    };
  return { share: passed / of.expected_ms, text: `${since} About ${brief(left)} left.` };
}

/** What a rebuild has made; the first build of a version has nothing to be compared with. */
export function result({ view, generation, rows, differences }: RebuildResult): string {
  const found = differences === null ? "not compared" : plural(differences, "difference");
  return `${view} is generation ${generation}: ${plural(rows, "row")}, ${found}`;
}

/** The expected duration, shown before the rebuild is requested. */
export function price(of: RebuildProgress | null | undefined): string {
  if (!of) return "";
  const time =
    of.expected_ms === null
      ? "the duration is not known yet"
      : `about ${duration(of.expected_ms)}, by the largest build of this run`;
  return `It reads ${plural(of.events, "event")}: ${time}.`;
}
