/** Requests as code for a shell and for Python. tests/snippets.test.ts checks the quoting. */

/** The authorization header, for a shell with a token in its environment. */
export const BEARER = '-H "Authorization: Bearer $HEADRACE_TOKEN"';

const PYTHON_BEARER = '{"Authorization": f"Bearer {os.environ[\'HEADRACE_TOKEN\']}"}';

/** Text quoted as one word of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The base URL for requests of a page: that of the server, or of the job. */
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

/** The definition of a view with this query. */
export function createView(name: string, sql: string): string {
  const body = sql.trim().replace(/;\s*$/, "");
  return `CREATE VIEW ${name} AS\n${body};\n`;
}

/** The parameters `:name` of a query in their order, outside of strings and comments. */
export function parameters(sql: string): string[] {
  const plain = sql.replace(/--[^\n]*|'(?:[^']|'')*'/g, " ");
  return [...new Set([...plain.matchAll(/(?<![:\w]):([A-Za-z_]\w*)/g)].map((found) => found[1]!))];
}

/** The query with each `:name` replaced by a literal: a number, NULL, or a string. */
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
