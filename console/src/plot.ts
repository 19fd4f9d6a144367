/** How an answer is best drawn, decided from its columns alone. Pure: tests/plot.test.ts checks it.
 *
 * With at least three windows a number is drawn over time, a line for each of the largest groups.
 * Otherwise the newest window's groups, or the rows, become bars. A single row is numbers.
 */

import type { Row } from "./api";
import { cell, isWindow } from "./format";
import type { Answer, ColumnInfo } from "./wire";

const NUMERIC = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL.*)$/;
export const LINES_MAX = 6;
export const BARS_MAX = 12;

export interface Lines {
  kind: "lines";
  measure: string;
  by: string | null;
  xs: number[]; // seconds
  series: { name: string; values: (number | null)[] }[];
  others: number; // groups that are not drawn
  settled: number | null; // windows that end after this may still change
}

export interface Bars {
  kind: "bars";
  measure: string;
  by: string;
  bars: { name: string; value: number }[];
  others: number;
}

export interface Figures {
  kind: "figures";
  figures: { name: string; value: unknown }[];
}

export type Plot = Lines | Bars | Figures | { kind: "none" };

export function measures(columns: Record<string, ColumnInfo>): string[] {
  return Object.keys(columns).filter((name) => NUMERIC.test(columns[name]!.type));
}

export function windowColumn(columns: Record<string, ColumnInfo>): string | null {
  return Object.keys(columns).find((name) => columns[name]!.type === "WINDOW") ?? null;
}

export function groupColumns(
  columns: Record<string, ColumnInfo>,
  keys?: readonly string[],
): string[] {
  const all = Object.keys(columns).filter((name) => columns[name]!.type !== "WINDOW");
  if (keys) return all.filter((name) => keys.includes(name));
  return all.filter((name) => /^(STRING|BOOLEAN)/.test(columns[name]!.type));
}

export interface Wish {
  measure?: string | null;
  keys?: readonly string[];
}

export type Drawable = Pick<Answer, "rows" | "columns"> & Partial<Pick<Answer, "as_of">>;

export function plot(answer: Drawable, wish: Wish = {}): Plot {
  const { rows, columns } = answer;
  const groups = groupColumns(columns, wish.keys);
  const numbers = measures(columns).filter((name) => !groups.includes(name));
  const measure = wish.measure && numbers.includes(wish.measure) ? wish.measure : numbers[0];
  if (!rows.length || !measure) return { kind: "none" };
  const window = windowColumn(columns);
  if (window) {
    const drawn = { ...overTime(rows, window, groups, measure), settled: watermark(answer) };
    return drawn.xs.length >= 3 ? drawn : bars(newest(rows, window), groups, measure, window);
  }
  if (rows.length === 1 && !groups.length) return figures(rows[0]!);
  return bars(rows, groups, measure, null);
}

/** The watermark of the slowest stream behind an answer, in seconds. */
function watermark({ as_of }: Drawable): number | null {
  const marks = Object.values(as_of ?? {}).flatMap((as) =>
    as.watermark ? [Date.parse(as.watermark) / 1000] : [],
  );
  return marks.length ? Math.min(...marks) : null;
}

function overTime(
  rows: Row[],
  window: string,
  groups: string[],
  measure: string,
): Omit<Lines, "settled"> {
  const times = new Set<number>();
  const byGroup = new Map<string, Map<number, number>>();
  for (const row of rows) {
    const at = startOf(row[window]);
    const value = row[measure];
    if (at === null || typeof value !== "number") continue;
    times.add(at);
    const name = label(row, groups) || measure;
    const line = byGroup.get(name) ?? new Map<number, number>();
    line.set(at, value);
    byGroup.set(name, line);
  }
  const xs = [...times].sort((a, b) => a - b);
  const lines = [...byGroup].sort(([a, x], [b, y]) => total(y) - total(x) || a.localeCompare(b));
  const series = lines.slice(0, LINES_MAX).map(([name, line]) => ({
    name,
    values: xs.map((x) => line.get(x) ?? null),
  }));
  // In the order of their names, so that a line keeps its colour when another overtakes it.
  series.sort((a, b) => a.name.localeCompare(b.name));
  const others = Math.max(0, lines.length - LINES_MAX);
  return { kind: "lines", measure, by: groups.join(" · ") || null, xs, series, others };
}

function bars(rows: Row[], groups: string[], measure: string, window: string | null): Bars {
  const named = rows.map((row) => ({
    name: label(row, groups) || (window ? cell(row[window]) : measure),
    value: typeof row[measure] === "number" ? (row[measure] as number) : 0,
  }));
  named.sort((a, b) => b.value - a.value || a.name.localeCompare(b.name));
  const by = groups.join(" · ") || window || "";
  return {
    kind: "bars",
    measure,
    by,
    bars: named.slice(0, BARS_MAX),
    others: Math.max(0, named.length - BARS_MAX),
  };
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

/** The start of a window in seconds. */
export function startOf(value: unknown): number | null {
  if (!isWindow(value)) return null;
  const at = Date.parse(value.start);
  return Number.isNaN(at) ? null : at / 1000;
}

function label(row: Row, groups: string[]): string {
  return groups.map((name) => cell(row[name])).join(" · ");
}

function total(line: Map<number, number>): number {
  let sum = 0;
  for (const value of line.values()) sum += Math.abs(value);
  return sum;
}

/** From when on windows are asked for, so that about `windows` of them come; null: all. */
export function since(answer: Answer, windows = 90): string | null {
  const name = windowColumn(answer.columns);
  const seen = name ? answer.rows.map((row) => row[name]).find(isWindow) : undefined;
  const width = seen ? Date.parse(seen.end) - Date.parse(seen.start) : 0;
  const marks = Object.values(answer.as_of).flatMap((as) =>
    as.watermark ? [Date.parse(as.watermark)] : [],
  );
  if (!(width > 0) || !marks.length) return null;
  return new Date(Math.min(...marks) - windows * width).toISOString();
}

/** Rows with the newest window first; other answers as they are. */
export function newestFirst(answer: Pick<Answer, "rows" | "columns">): Row[] {
  const window = windowColumn(answer.columns);
  if (!window) return answer.rows;
  const at = (row: Row) => startOf(row[window]) ?? -Infinity;
  return [...answer.rows].sort((a, b) => at(b) - at(a));
}
