/** The parameters that identify a row of a view: its keys, and the start of its window. */

import type { Row } from "./api";
import { isWindow } from "./format";
import type { ColumnInfo } from "./wire";

export function keysOf(row: Row, columns: Record<string, ColumnInfo>): Record<string, string> {
  const keys: Record<string, string> = {};
  const nulls: string[] = [];
  for (const [name, value] of Object.entries(row)) {
    if (isWindow(value)) keys.window = value.start;
    else if (!columns[name]?.key) continue;
    else if (value === null) nulls.push(name);
    else keys[name] = String(value);
  }
  if (nulls.length) keys.null = nulls.join(",");
  return keys;
}
