/** Chooses the rows of a view to request, so that its chart is complete.
 *
 * A view with windows: the newest windows with all their rows, or the rows of one window with the
 * largest measure. Another view: the rows with the largest measure. The server selects and counts
 * them. tests/reading.test.ts checks it.
 */

import type { ViewQuestion } from "./api";
import { measureOf, since, windowColumn } from "./plot";
import { startOf } from "./timeline";
import type { Answer } from "./wire";

/** The rows per request, of a view with windows and of one without. */
export const WINDOW_ROWS_MAX = 4000;
export const ROWS_MAX = 200;

export type Ask = (question: ViewQuestion) => Promise<Answer>;

/** `before` is the last answer, so that only the first time takes two requests. */
export async function readView(
  ask: Ask,
  windows: number,
  wished: string | null,
  before: Answer | null,
): Promise<Answer> {
  const known = before?.rows.length ? before : await ask({ limit: 1 });
  const window = windowColumn(known.columns);
  const measure = measureOf(known.columns, wished);
  const order = [window, measure].flatMap((name) => (name ? [`-${name}`] : [])).join(",");
  if (!window) return ask({ limit: ROWS_MAX, order: order || Object.keys(known.columns)[0] });
  const newest = (from: string | null) =>
    ask({ limit: WINDOW_ROWS_MAX, order, from: from ?? undefined });
  for (let wanted = windows; ; wanted = Math.floor(wanted / 2)) {
    const from = since(known, wanted);
    const answer = await newest(from);
    if (!answer.rows.length && from) return whole(await newest(null), window, newest);
    // More rows would be truncated within a window, so fewer windows are requested.
    if (!cut(answer) || !from || wanted < 2) return whole(answer, window, newest);
  }
}

const cut = (answer: Answer): boolean => (answer.total ?? 0) > answer.rows.length;

/** Only complete windows; if there is none, the largest rows of the newest window. */
async function whole(
  answer: Answer,
  window: string,
  newest: (from: string) => Promise<Answer>,
): Promise<Answer> {
  if (!cut(answer)) return answer;
  const at = (index: number) => startOf(answer.rows.at(index)?.[window]);
  const [first, last] = [at(0), at(-1)];
  if (first !== null && first === last) return newest(new Date(first * 1000).toISOString());
  const rows = answer.rows.filter((row) => startOf(row[window]) !== last);
  return { ...answer, rows, total: rows.length };
}

/** The first rows of an answer, for which one more row was requested. */
export function firstOf(answer: Answer, most: number): Answer {
  const truncated = answer.truncated || answer.rows.length > most;
  return { ...answer, rows: answer.rows.slice(0, most), truncated };
}
