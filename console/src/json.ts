/** JSON without rounded numbers. tests/json.test.ts checks it.
 *
 * A BIGINT has 64 bits and a JavaScript number 53, so an integer that would be rounded is parsed as a
 * bigint. A text that is only indented is not parsed, so its values stay unchanged.
 */

const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const VALUES = new RegExp(`${STRING}|-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?`, "g");
const TOKENS = new RegExp(`${STRING}|[{}[\\],:]|[^\\s{}[\\],:"]+`, "g");

export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  // A random prefix, so that no string of an event can be mistaken for a number.
  const mark = `${Math.random()}:`;
  const kept = text.replace(VALUES, (token) => (rounded(token) ? `"${mark}${token}"` : token));
  return JSON.parse(kept, (_, value) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

const rounded = (token: string): boolean =>
  /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token));

/** A value as JSON, also one with bigints in it. */
export function stringify(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).map(
    ([name, of]) => `${JSON.stringify(name)}:${stringify(of)}`,
  );
  return `{${fields.join(",")}}`;
}

/** A text of JSON with indentation; one that is not valid JSON is unchanged. */
export function pretty(raw: string): string {
  let depth = 0;
  let before = "";
  let laid = "";
  for (const token of tokens(raw) ?? [raw]) {
    const closes = token === "}" || token === "]";
    const opened = before === "{" || before === "[";
    if (closes) depth -= 1;
    if (closes ? !opened : opened || before === ",") laid += `\n${"  ".repeat(depth)}`;
    laid += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return laid;
}

/** A text of JSON on one line; one that is not valid JSON is unchanged. */
export const compact = (raw: string): string => tokens(raw)?.join("") ?? raw;

function tokens(raw: string): string[] | null {
  try {
    JSON.parse(raw);
  } catch {
    return null;
  }
  return raw.match(TOKENS);
}
