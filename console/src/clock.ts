/** The server's clock, by which what it dates is read: the browser's may be wrong by minutes.
 *
 * The date of an answer is in whole seconds, so a difference that small is ignored.
 * tests/clock.test.ts checks it.
 */

const ROUGH_MS = 2000;
let ahead = 0;

/** Read the date of an answer that has just come. */
export function readDate(date: string | null, now = Date.now()): void {
  const theirs = date === null ? Number.NaN : Date.parse(date) + 500;
  if (Number.isNaN(theirs)) return;
  ahead = Math.abs(theirs - now) > ROUGH_MS ? theirs - now : 0;
}

/** What the server's clock shows. */
export const serverNow = (now = Date.now()): number => now + ahead;
