/** The server's clock, for its timestamps: the browser's clock may be wrong by minutes.
 *
 * The date of a response is in whole seconds, so smaller differences are ignored.
 * tests/clock.test.ts checks it.
 */

const ROUGH_MS = 2000;
let ahead = 0;

/** Read the date of a response that has just arrived. */
export function readDate(date: string | null, now = Date.now()): void {
  const theirs = date === null ? Number.NaN : Date.parse(date) + 500;
  if (Number.isNaN(theirs)) return;
  ahead = Math.abs(theirs - now) > ROUGH_MS ? theirs - now : 0;
}

/** The time of the server. */
export const serverNow = (now = Date.now()): number => now + ahead;
