/** Questions as one would ask them elsewhere. tests/snippets.test.ts checks the quoting. */

/** Who asks, in a shell that has a token. */
export const BEARER = '-H "Authorization: Bearer $HEADRACE_TOKEN"';

const PYTHON_BEARER = '{"Authorization": f"Bearer {os.environ[\'HEADRACE_TOKEN\']}"}';

/** Text as one word of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Where a page asks, by its address: the server, or behind a server of jobs the job. */
export function base(href: string): string {
  return new URL(".", href).href.replace(/\/$/, "");
}

export function curlView(
  origin: string,
  view: string,
  params: Record<string, string> = {},
): string {
  const asked = new URLSearchParams(params).toString();
  return `curl ${BEARER} ${quoted(`${origin}/v1/views/${encodeURIComponent(view)}${asked ? `?${asked}` : ""}`)}`;
}

export function pythonView(
  origin: string,
  view: string,
  params: Record<string, string> = {},
): string {
  return [
    "import os",
    "",
    "import httpx",
    "",
    "answer = httpx.get(",
    `    ${JSON.stringify(`${origin}/v1/views/${encodeURIComponent(view)}`)},`,
    `    params=${JSON.stringify(params)},`,
    `    headers=${PYTHON_BEARER},`,
    ").json()",
    'for row in answer["rows"]:',
    "    print(row)",
    'print("as of", answer["as_of"])',
  ].join("\n");
}

export function curlSql(origin: string, sql: string): string {
  return `curl -X POST ${origin}/v1/sql \\\n  ${BEARER} \\\n  --data-binary ${quoted(JSON.stringify({ sql }))}`;
}

export function pythonSql(origin: string, sql: string): string {
  return [
    "import os",
    "",
    "import httpx",
    "",
    "answer = httpx.post(",
    `    ${JSON.stringify(`${origin}/v1/sql`)},`,
    `    json={"sql": ${JSON.stringify(sql)}},`,
    `    headers=${PYTHON_BEARER},`,
    ").json()",
    'for row in answer["rows"]:',
    "    print(row)",
  ].join("\n");
}

/** The definition that a query becomes when it is put into the project. */
export function createView(name: string, sql: string): string {
  const body = sql.trim().replace(/;\s*$/, "");
  return `CREATE VIEW ${name} AS\n${body};\n`;
}

/** `:name` in a query, in order of appearance, outside of texts and comments. */
export function parameters(sql: string): string[] {
  const plain = sql.replace(/--[^\n]*|'(?:[^']|'')*'/g, " ");
  return [...new Set([...plain.matchAll(/(?<![:\w]):([A-Za-z_]\w*)/g)].map((found) => found[1]!))];
}

/** The query with each `:name` replaced by a literal: numbers and NULL as they are, else a text. */
export function filled(sql: string, values: Record<string, string>): string {
  return sql.replace(
    /(--[^\n]*|'(?:[^']|'')*')|(?<![:\w]):([A-Za-z_]\w*)/g,
    (whole, kept: string | undefined, name: string) =>
      kept === undefined && name in values ? literal(values[name]!) : whole,
  );
}

export function literal(text: string): string {
  if (/^-?\d+(\.\d+)?$/.test(text) || /^(null|true|false)$/i.test(text)) return text;
  return `'${text.replaceAll("'", "''")}'`;
}
