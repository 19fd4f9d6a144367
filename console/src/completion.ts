/** What the editor completes beside SQL's own words: the columns of what a query reads, by themselves
 *  and not only behind a name and a dot. tests/completion.test.ts checks it.
 */

import type { Catalog } from "./wire";

export interface Completed {
  label: string;
  type: "property";
  detail: string;
}

const RELATION = /\b(?:from|join)\s+[`"]?(\w+)[`"]?/gi;

/** The columns of all relations that a text reads; of none if it reads none that is known. */
export function columnsIn(text: string, catalog: Catalog): Completed[] {
  const read = new Set([...text.matchAll(RELATION)].map(([, name]) => name!.toLowerCase()));
  const relations = [...catalog.streams, ...catalog.tables, ...catalog.views];
  const found = new Map<string, Completed>();
  for (const one of relations.filter(({ name }) => read.has(name.toLowerCase()))) {
    for (const { name, type } of one.columns) {
      const detail = [type, `of ${one.name}`].filter(Boolean).join(" ");
      if (!found.has(name)) found.set(name, { label: name, type: "property", detail });
    }
  }
  return [...found.values()];
}
