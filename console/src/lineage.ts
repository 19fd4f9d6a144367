/** The upstream and downstream columns of a column. tests/lineage.test.ts checks it. */

import type { Lineage } from "./wire";

export const at = (object: string, column: string): string => `${object}\n${column}`;

/** Everything upstream and downstream of a column, itself included. */
export function related(lineage: Lineage, chosen: string): Set<string> {
  const up = new Map<string, string[]>();
  const down = new Map<string, string[]>();
  for (const { object, column, from } of lineage.columns) {
    const made = at(object, column);
    for (const source of from) {
      const of = at(source.object, source.column);
      up.set(made, [...(up.get(made) ?? []), of]);
      down.set(of, [...(down.get(of) ?? []), made]);
    }
  }
  return new Set([...reach(up, chosen), ...reach(down, chosen)]);
}

function reach(next: Map<string, string[]>, first: string): Set<string> {
  const found = new Set([first]);
  const waiting = [first];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    for (const other of next.get(one) ?? []) {
      if (found.has(other)) continue;
      found.add(other);
      waiting.push(other);
    }
  }
  return found;
}
