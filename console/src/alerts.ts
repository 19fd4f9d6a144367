/** Alerts as a page shows them: by rule, in the server's order, the gravest first.
 *
 * A rule shows its newest alerts and the older ones that were requested; the server counts all of
 * them. tests/alerts.test.ts checks it.
 */

import type { Alert, AlertGroup, Alerts } from "./wire";

export interface ShownGroup extends AlertGroup {
  shown: Alert[];
}

export function grouped(found: Alerts, older: Readonly<Record<string, Alert[]>>): ShownGroup[] {
  return found.groups.map((group) => {
    const newest = found.alerts.filter((alert) => alert.rule === group.rule);
    // A new alert shifts the pages, so an older page may repeat alerts that are shown already.
    const byId = new Map([...newest, ...(older[group.rule] ?? [])].map((one) => [one.id, one]));
    const shown = [...byId.values()].sort((a, b) => b.number - a.number);
    return { ...group, shown };
  });
}

/** "critical", with the badge's colour; an unknown severity is shown as a warning. */
const TONES = { critical: "bad", high: "bad", medium: "warn", low: "idle", info: "idle" } as const;
export const severityTone = (severity: string): "bad" | "warn" | "idle" =>
  TONES[severity as keyof typeof TONES] ?? "warn";

/** How many alerts are open, by severity, the gravest first. */
const SEVERITIES = Object.keys(TONES);
export function openBySeverity(
  rules: readonly { severity: string; numbers: { open: number } }[],
): [string, number][] {
  return SEVERITIES.map((severity): [string, number] => [
    severity,
    rules.reduce((sum, rule) => sum + (rule.severity === severity ? rule.numbers.open : 0), 0),
  ]).filter(([, open]) => open > 0);
}
