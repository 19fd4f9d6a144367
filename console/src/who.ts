/** The signed-in user and their grants.
 *
 * An operation is allowed if a grant covers it and the token is not narrower. The server authorizes
 * each request; the check here only disables what would be refused.
 * tests/who.test.ts checks it.
 */

import { store } from "./store";
import type { SessionReport } from "./wire";

/** `may` and `on` are the limits of the token; without limits it has all grants of its user. */
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

/** Whether the user may do this on `*` or on `kind:name`; an unknown user may not. */
export function allows(who: SessionReport | null, operation: string, on: string): boolean {
  if (!who || (who.may.length && !who.may.includes(operation))) return false;
  const object = on.toLowerCase();
  if (who.on.length && !who.on.some((part) => covers(part, object, who.job))) return false;
  return who.granted.some(
    (one) => one.operations.includes(operation) && covers(one.on, object, who.job),
  );
}

/** A grant on a job covers everything in it except users, which belong to the server. */
function covers(granted: string, object: string, job: string): boolean {
  if (granted === EVERYTHING || granted === object) return true;
  return (
    granted === `job:${job.toLowerCase()}` && object !== EVERYTHING && !object.startsWith("job:")
  );
}

/** A token with limits cannot create other tokens. */
export function narrowed(who: SessionReport | null): boolean {
  return Boolean(who?.may.length || who?.on.length);
}
