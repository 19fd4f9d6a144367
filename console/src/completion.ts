/** Completions of the editor beside SQL keywords: the columns of the relations that a query reads, also
 *  without the name of the relation. tests/completion.test.ts checks it.
 */

import type { Catalog } from "./wire";

export interface Completed {
  label: string;
  type: "property";
  detail: string;
}

const RELATION = /\b(?:from|join)\s+[`"]?(\w+)[`"]?/gi;

/** The columns of all known relations that a text reads. */
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
