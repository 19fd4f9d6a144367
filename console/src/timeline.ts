/** The x values of a chart over time: the start of each window, and of missing windows.
 *
 * A window without a row is drawn like an aggregate of no rows: a count is 0, anything else is a gap.
 * A gap has x values at its first and last missing window, so that no line crosses it.
 * tests/timeline.test.ts checks it.
 */

import type { Row } from "./api";
import { isWindow } from "./format";
import type { Windows } from "./wire";

export interface Timeline {
  xs: number[]; // seconds
  windows: number; // those that have a row
}

/** The start of a window in seconds. */
export function startOf(value: unknown): number | null {
  if (!isWindow(value)) return null;
  const at = Date.parse(value.start);
  return Number.isNaN(at) ? null : at / 1000;
}

/** `windows` is the shape of the windows, if it is known; windows up to `settled` are final. */
export function timeline(
  rows: readonly Row[],
  window: string,
  windows: Windows | null,
  settled: number | null,
): Timeline {
  const ends = new Map<number, number>();
  for (const row of rows) {
    const at = startOf(row[window]);
    if (at !== null) ends.set(at, Date.parse((row[window] as { end: string }).end) / 1000);
  }
  const starts = [...ends.keys()].sort((a, b) => a - b);
  const step = windows ? windows.every_ms / 1000 : null;
  const xs = starts.flatMap((at, index) => {
    const next = starts[index + 1];
    const until = next ?? (step === null ? null : quietUntil(at, ends.get(at)!, step, settled));
    return until === null ? [at] : [at, ...hole(at, ends.get(at)!, until, step)];
  });
  return { xs, windows: starts.length };
}

/** The start of the first window after the newest one that may still get events. */
function quietUntil(at: number, end: number, step: number, settled: number | null): number | null {
  if (settled === null || !(end > at)) return null;
  return at + step * Math.max(1, Math.floor((settled - end) / step) + 1);
}

/** The x values between two windows, where some are missing. */
function hole(at: number, end: number, next: number, step: number | null): number[] {
  // Sessions start at any time; between two that do not meet there is a gap.
  if (step === null) return next > end ? [end] : [];
  const [first, last] = [at + step, next - step];
  if (first > last + step / 2) return [];
  return last - first > step / 2 ? [first, last] : [first];
}

/** The points to draw: all if they are few; else only isolated ones, which no line makes visible. */
export function pointed(values: ArrayLike<number | null | undefined>): number[] {
  const there = (at: number) => values[at] != null;
  return Array.from(values, (_, at) => at).filter(
    (at) => there(at) && (values.length < 12 || !(there(at - 1) || there(at + 1))),
  );
}
