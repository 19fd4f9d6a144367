/** Chooses the chart of an answer by its columns. Pure: tests/plot.test.ts checks it.
 *
 * With at least three windows a number is drawn over time, a line for each of the largest groups.
 * Otherwise the newest window's groups, or the rows, become bars. A single row is numbers. A key is
 * never drawn as the measure, nor a truncated answer whose number of rows is unknown.
 */

import type { Row } from "./api";
import { cell, isWindow } from "./format";
import { startOf, timeline } from "./timeline";
import type { Answer, ColumnInfo } from "./wire";

export const NUMERIC = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL.*)$/;
export const LINES_MAX = 6;
export const BARS_MAX = 12;

export interface Lines {
  kind: "lines";
  measure: string;
  by: string | null;
  xs: number[]; // seconds
  series: { name: string; values: (number | null)[]; cells: unknown[] }[]; // a cell keeps all digits
  others: number; // groups that are not drawn
  settled: number | null; // windows that end after this may still change
}

export interface Bars {
  kind: "bars";
  measure: string;
  by: string;
  bars: { name: string; value: number; cell: unknown }[];
  others: number; // rows that are not drawn
}

export interface Figures {
  kind: "figures";
  figures: { name: string; value: unknown }[];
}

/** `cut`: the answer is truncated, and nobody knows how many rows or which groups are missing. */
export type Plot = Lines | Bars | Figures | { kind: "none" } | { kind: "cut" };

/** The numbers that can be drawn. */
export function measures(columns: Record<string, ColumnInfo>): string[] {
  return Object.keys(columns).filter(
    (name) => NUMERIC.test(columns[name]!.type) && !columns[name]!.key,
  );
}

/** A window of a view, or as Spark names its type. */
const WINDOW = /^(WINDOW|STRUCT<start: TIMESTAMP, end: TIMESTAMP>)$/;

export function windowColumn(columns: Record<string, ColumnInfo>): string | null {
  return Object.keys(columns).find((name) => WINDOW.test(columns[name]!.type)) ?? null;
}

/** The columns that identify a row: its keys, or its texts where a query has no keys. */
export function groupColumns(columns: Record<string, ColumnInfo>): string[] {
  const all = Object.keys(columns).filter((name) => !WINDOW.test(columns[name]!.type));
  const keys = all.filter((name) => columns[name]!.key);
  return keys.length ? keys : all.filter((name) => /^(STRING|BOOLEAN)/.test(columns[name]!.type));
}

export type Drawable = Pick<Answer, "rows" | "columns"> &
  Partial<Pick<Answer, "as_of" | "total" | "truncated" | "windows">>;

export function plot(answer: Drawable, wished?: string | null): Plot {
  const { rows, columns } = answer;
  const measure = measureOf(columns, wished);
  if (!rows.length || !measure) return { kind: "none" };
  if (answer.truncated && answer.total == null) return { kind: "cut" };
  const groups = groupColumns(columns);
  const window = windowColumn(columns);
  const unread = Math.max(0, (answer.total ?? 0) - rows.length);
  if (window)
    return (
      overTime(answer, window, groups, measure) ??
      bars(newest(rows, window), groups, measure, window, unread)
    );
  if (rows.length === 1 && !groups.length) return figures(rows[0]!);
  return bars(rows, groups, measure, null, unread);
}

/** The number that is drawn: the chosen one if it is valid, else the first. */
export function measureOf(
  columns: Record<string, ColumnInfo>,
  wished?: string | null,
): string | null {
  const numbers = measures(columns);
  return numbers.find((name) => name === wished) ?? numbers[0] ?? null;
}

/** The watermark of the slowest stream behind an answer, in seconds. */
function watermark({ as_of }: Drawable): number | null {
  const marks = Object.values(as_of ?? {}).flatMap((as) =>
    as.watermark ? [Date.parse(as.watermark) / 1000] : [],
  );
  return marks.length ? Math.min(...marks) : null;
}

/** Null if there are fewer than three windows. */
function overTime(
  answer: Drawable,
  window: string,
  groups: string[],
  measure: string,
): Lines | null {
  const settled = watermark(answer);
  const { xs, windows } = timeline(answer.rows, window, answer.windows ?? null, settled);
  if (windows < 3) return null;
  const byGroup = new Map<string, Map<number, unknown>>();
  for (const row of answer.rows) {
    const at = startOf(row[window]);
    if (at === null || numeric(row[measure]) === null) continue;
    const name = label(row, groups) || measure;
    const line = byGroup.get(name) ?? new Map<number, unknown>();
    byGroup.set(name, line.set(at, row[measure]));
  }
  const lines = [...byGroup].sort(([a, x], [b, y]) => total(y) - total(x) || a.localeCompare(b));
  const empty = answer.windows?.empty[measure] ?? null;
  const series = lines.slice(0, LINES_MAX).map(([name, line]) => {
    const cells = xs.map((x) => line.get(x) ?? empty);
    return { name, values: cells.map(numeric), cells };
  });
  // Sorted by name, so that a line keeps its colour when the values change.
  series.sort((a, b) => a.name.localeCompare(b.name));
  const others = Math.max(0, lines.length - LINES_MAX);
  return { kind: "lines", measure, by: groups.join(" · ") || null, xs, series, others, settled };
}

/** `unread` is the number of smaller rows that were not requested. */
function bars(
  rows: Row[],
  groups: string[],
  measure: string,
  window: string | null,
  unread: number,
): Bars {
  const named = rows.map((row) => ({
    name: label(row, groups) || (window ? cell(row[window]) : measure),
    value: numeric(row[measure]) ?? 0,
    cell: row[measure],
  }));
  named.sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  const by = groups.join(" · ") || window || "";
  const others = Math.max(0, named.length - BARS_MAX) + unread;
  return { kind: "bars", measure, by, bars: named.slice(0, BARS_MAX), others };
}

/** The value of a bar or a point. Numbers beyond 2⁵³, and decimals, which are sent as text, are rounded
 * for drawing only.
 */
function numeric(value: unknown): number | null {
  const decimal = typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value);
  return decimal || typeof value === "number" || typeof value === "bigint" ? Number(value) : null;
}

function figures(row: Row): Figures {
  return {
    kind: "figures",
    figures: Object.entries(row).map(([name, value]) => ({ name, value })),
  };
}

function newest(rows: Row[], window: string): Row[] {
  const last = rows.reduce(
    (most, row) => Math.max(most, startOf(row[window]) ?? -Infinity),
    -Infinity,
  );
  return rows.filter((row) => startOf(row[window]) === last);
}

function label(row: Row, groups: string[]): string {
  return groups.map((name) => cell(row[name])).join(" · ");
}

function total(line: Map<number, unknown>): number {
  let sum = 0;
  for (const value of line.values()) sum += Math.abs(numeric(value) ?? 0);
  return sum;
}

/** The start time of a request for about `windows` windows; null: all. */
export function since(answer: Answer, windows = 90): string | null {
  const name = windowColumn(answer.columns);
  const seen = name ? answer.rows.map((row) => row[name]).find(isWindow) : undefined;
  const width = seen ? Date.parse(seen.end) - Date.parse(seen.start) : 0;
  const step = answer.windows?.every_ms ?? width;
  const marks = Object.values(answer.as_of).flatMap((as) =>
    as.watermark ? [Date.parse(as.watermark)] : [],
  );
  if (!(step > 0) || !marks.length) return null;
  return new Date(Math.min(...marks) - windows * step).toISOString();
}
