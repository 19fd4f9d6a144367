/** The shares on the page of data quality, each with its total.
 *
 * Duplicates and dead letters are shares of all records in the log and the master; late events are a
 * share of the events that speed has committed. tests/quality.test.ts checks it.
 */

import { count, percent, plural } from "./format";
import type { StreamQuality } from "./wire";

/** "1.2 % of 19,977 records", or only the total. */
export function shareOf(part: number, all: number, noun: string): string {
  return all ? `${percent(part / all)} of ${plural(all, noun)}` : `of no ${noun} yet`;
}

/** Where the dead letters are; the balance below counts only those of the master. */
export function whereDead({ dead_letters, balance }: StreamQuality): string {
  const waiting = dead_letters - balance.dead_letters;
  return waiting > 0
    ? `${count(balance.dead_letters)} archived, ${count(waiting)} still in the log`
    : "all archived";
}

/** The number of dead letters that the reasons cover. */
export function reasonsOf({ reasons, dead_letters }: StreamQuality): string {
  const explained = reasons.reduce((sum, one) => sum + one.events, 0);
  if (explained >= dead_letters) return plural(dead_letters, "dead letter");
  return `the newest ${count(explained)} of ${plural(dead_letters, "dead letter")}`;
}

/** How many of the undeclared fields are listed. */
export function driftOf({ undeclared, undeclared_total }: StreamQuality): string {
  const all = plural(undeclared_total, "field");
  const listed = undeclared.length;
  return `${listed < undeclared_total ? `the ${count(listed)} most common of ${all}` : all} that no column declares`;
}

/** The height of a bar as a share of the highest. The scale is a square root, so that a few late events
 *  beside many on time are visible; the chart says so. */
export const SCALE = "heights are square roots of the numbers";
export const height = (events: number, most: number): number => Math.sqrt(events / most);
