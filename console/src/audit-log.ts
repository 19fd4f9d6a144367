/** Which entries of the audit log are looked for. The user is asked of the server, so that older
 *  entries are found too; the rest is chosen among what it sent. tests/audit-log.test.ts.
 */

import type { AuditEntry } from "./wire";

export interface EntriesWanted {
  decision?: string;
  what?: string;
  text?: string;
}

export function matching(entries: readonly AuditEntry[], wanted: EntriesWanted): AuditEntry[] {
  const words = (wanted.text ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((one) => {
    const said = `${one.user} ${one.token} ${one.what} ${one.object} ${one.detail} ${one.request}`.toLowerCase();
    return (!wanted.decision || one.decision === wanted.decision) && (!wanted.what || one.what === wanted.what)
      && words.every((word) => said.includes(word));
  });
}

/** The name of a route as one reads it: "create_token" → "create token". */
export const spoken = (what: string): string => what.replaceAll("_", " ");
