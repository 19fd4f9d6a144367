/** Who has signed in, and what they may do.
 *
 * The rule is the server's: allowed is what some grant covers, within what the token carries. The
 * server decides at each request; here it is asked only to say beforehand what would be refused.
 * tests/who.test.ts checks it.
 */

import { store } from "./store";
import type { SessionReport } from "./wire";

/** `may` and `on` are what the token is narrowed to; empty ones carry all of the user's. */
export const me = store<SessionReport | null>(null);

export const ROLES = ["viewer", "sender", "developer", "operator", "admin"] as const;
export const OPERATIONS = [
  "read",
  "send",
  "define",
  "submit",
  "rebuild",
  "cancel",
  "restart",
  "mute",
  "acknowledge",
  "audit",
  "manage",
] as const;
export const EVERYTHING = "*";

/** Whether one may do this on `*` or on `kind:name`. Whoever is not known may nothing. */
export function allows(who: SessionReport | null, operation: string, on: string): boolean {
  if (!who || (who.may.length && !who.may.includes(operation))) return false;
  const object = on.toLowerCase();
  if (who.on.length && !who.on.some((part) => covers(part, object, who.job))) return false;
  return who.granted.some(
    (one) => one.operations.includes(operation) && covers(one.on, object, who.job),
  );
}

/** A job holds all that is in it, but not the users, who are of the whole server. */
function covers(granted: string, object: string, job: string): boolean {
  if (granted === EVERYTHING || granted === object) return true;
  return (
    granted === `job:${job.toLowerCase()}` && object !== EVERYTHING && !object.startsWith("job:")
  );
}

/** A token that carries less than its user has can make no other. */
export function narrowed(who: SessionReport | null): boolean {
  return Boolean(who?.may.length || who?.on.length);
}
