/** Formats numbers and times.
 *
 * Every function is pure; the current time is a parameter. tests/format.test.ts checks them.
 */

import { stringify } from "./json";

const GROUPED = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 2 });
const THIN = "\u2009";

/** 1234567 → "1,234,567". */
export function count(value: number | bigint | null | undefined): string {
  return value == null ? "–" : GROUPED.format(value);
}

/** 1234567 → "1.23M": three significant digits. */
export function short(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [limit, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (size >= limit * 0.9995) return digits(value / limit) + unit;
  }
  return digits(value);
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.01) return value.toPrecision(2);
  return String(Number(value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)));
}

/** Events per second. */
export function rate(value: number | null | undefined): string {
  return value == null ? "–" : `${short(value)}${THIN}/s`;
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${digits(size)}${THIN}${BYTE_UNITS[unit]}`;
}

export function percent(share: number | null | undefined): string {
  return share == null ? "–" : `${digits(share * 100)}${THIN}%`;
}

/** A duration in its two largest units: 3_725_000 → "1 h 2 min". */
export function duration(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return "–";
  const size = Math.abs(ms);
  const sign = ms < 0 ? "−" : "";
  if (size < 1000) return `${sign}${Math.round(size)}${THIN}ms`;
  if (size < 60_000) return `${sign}${digits(size / 1000)}${THIN}s`;
  const minutes = Math.floor(size / 60_000);
  if (minutes < 60) return sign + pair(minutes, "min", Math.floor((size % 60_000) / 1000), "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return sign + pair(hours, "h", minutes % 60, "min");
  return sign + pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(large: number, one: string, small: number, other: string): string {
  return `${large}${THIN}${one}${small ? ` ${small}${THIN}${other}` : ""}`;
}

/** A relative time: "now", "12 s ago", "in 3 min". */
export function ago(moment: string | number | null | undefined, now: number): string {
  if (moment == null) return "–";
  const at = typeof moment === "number" ? moment : Date.parse(moment);
  if (Number.isNaN(at)) return String(moment);
  const passed = now - at;
  if (Math.abs(passed) < 1000) return "now";
  return passed > 0 ? `${roughly(passed)} ago` : `in ${roughly(-passed)}`;
}

/** A duration in one unit, where space is limited. */
export function brief(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return "–";
  return Math.abs(ms) < 1000 ? `${Math.round(ms)}${THIN}ms` : roughly(ms);
}

function roughly(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}${THIN}s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)}${THIN}min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)}${THIN}h`;
  return `${Math.round(seconds / 86_400)}${THIN}d`;
}

/** A timestamp in a table, in UTC: "11-16 06:08:03". */
export function moment(value: string | number | null | undefined): string {
  const at = value == null ? NaN : typeof value === "number" ? value : Date.parse(value);
  if (Number.isNaN(at)) return value == null ? "–" : String(value);
  const iso = new Date(at).toISOString();
  return `${iso.slice(5, 10)} ${iso.slice(11, 19)}`;
}

/** Only the time of day: "06:08:03". */
export function clock(value: string | number | null | undefined): string {
  const text = moment(value);
  return text.length === 14 ? text.slice(6) : text;
}

/** A tick of a time axis of this many seconds. */
export function axisTime(seconds: number, span: number): string {
  const iso = new Date(seconds * 1000).toISOString();
  if (span > 3 * 86_400 || (span > 7200 && iso.slice(11, 16) === "00:00")) return iso.slice(5, 10);
  return span < 300 ? iso.slice(11, 19) : iso.slice(11, 16);
}

export interface Window {
  start: string;
  end: string;
}

export function isWindow(value: unknown): value is Window {
  return typeof value === "object" && value !== null && "start" in value && "end" in value;
}

/** A window [start, end) without repeating its day. */
export function interval(window: Window): string {
  const [start, end] = [moment(window.start), moment(window.end)];
  const tail = start.slice(0, 5) === end.slice(0, 5) ? end.slice(6) : end;
  return `${trimmed(start)} – ${trimmed(tail)}`;
}

function trimmed(text: string): string {
  return text.endsWith(":00") ? text.slice(0, -3) : text;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/** One value of a row, as text. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return "∅";
  if (typeof value === "bigint") return count(value);
  if (typeof value === "number") return Number.isInteger(value) ? count(value) : number(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  if (isWindow(value)) return interval(value);
  if (typeof value === "string") return TIME.test(value) ? moment(value) : value;
  return stringify(value);
}

function number(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e15)) return value.toPrecision(4);
  // Two decimals would round a small number to zero.
  return size < 1 ? String(Number(value.toPrecision(4))) : GROUPED.format(value);
}

/** "1 event", "2 events". */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Offsets of all partitions: [11935, 8042] → "11,935 · 8,042". */
export function position(offsets: readonly number[] | null | undefined): string {
  return offsets?.length ? offsets.map(count).join(" · ") : "–";
}

/** The name of a route as text: "create_token" → "create token". */
export const spoken = (what: string): string => what.replaceAll("_", " ");
