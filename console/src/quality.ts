/** What the page of data quality says of a stream: each share with what it is a share of.
 *
 * Duplicates and dead letters are of all records, in the log and in the master; late events are of
 * what speed has taken. tests/quality.test.ts checks it.
 */

import { count, percent, plural } from "./format";
import type { StreamQuality } from "./wire";

/** "1.2 % of 19,977 records", or only of how many. */
export function shareOf(part: number, all: number, noun: string): string {
  return all ? `${percent(part / all)} of ${plural(all, noun)}` : `of no ${noun} yet`;
}

/** Where dead letters are, since the balance below counts those of the master alone. */
export function whereDead({ dead_letters, balance }: StreamQuality): string {
  const waiting = dead_letters - balance.dead_letters;
  return waiting > 0
    ? `${count(balance.dead_letters)} archived, ${count(waiting)} still in the log`
    : "all archived";
}

/** Of how many dead letters the reasons are. */
export function reasonsOf({ reasons, dead_letters }: StreamQuality): string {
  const explained = reasons.reduce((sum, one) => sum + one.events, 0);
  if (explained >= dead_letters) return plural(dead_letters, "dead letter");
  return `the newest ${count(explained)} of ${plural(dead_letters, "dead letter")}`;
}

/** The height of a bar as a share of the highest: its square root, so that a few late events beside
 *  many on time can be seen. The chart says so. */
export const SCALE = "heights are square roots of the numbers";
export const height = (events: number, most: number): number => Math.sqrt(events / most);
