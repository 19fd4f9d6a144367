/** The phases of an epoch. Pure: tests/phases.test.ts checks it. */

import type { EpochInfo } from "./wire";

/** The phases of all epochs, longest first. */
export function phaseNames(epochs: readonly EpochInfo[]): string[] {
  const total = new Map<string, number>();
  for (const { phases } of epochs) {
    for (const [name, ms] of Object.entries(phases ?? {}))
      total.set(name, (total.get(name) ?? 0) + ms);
  }
  return [...total].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** The shown phases and the rest of the epoch; only the rest if the phases are unknown. */
export function segments(
  { phases, ms: whole }: EpochInfo,
  shown: readonly string[],
): [string, number][] {
  if (!phases) return [["epoch", whole]];
  const known = shown.map((name): [string, number] => [name, phases[name] ?? 0]);
  const rest = whole - known.reduce((sum, [, ms]) => sum + ms, 0);
  return [...known, ["other", Math.max(0, rest)]];
}
