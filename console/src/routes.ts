/** The routes of the console, as fragments of the address: `#/views/visitors?tab=late`.
 *
 * A fragment is not sent to the server, so the server has only one page.
 * tests/routes.test.ts checks that each route is parsed as it was formatted.
 */

export interface Place {
  page: string;
  name: string | null;
  query: Record<string, string>;
}

export interface Page {
  page: string;
  title: string;
  key: string; // after `g`
  icon: string;
  group: "Watch" | "Ask" | "Trust" | "Run";
  /** A route that the server must have; otherwise the page is not shown. */
  needs: string;
}

/** A route that a project has and a server of jobs does not have. */
export const PROJECT = "/v1/status";

export const PAGES: readonly Page[] = [
  { page: "topology", title: "Topology", key: "t", icon: "graph", group: "Watch", needs: PROJECT },
  { page: "views", title: "Views", key: "v", icon: "chart", group: "Watch", needs: PROJECT },
  { page: "alerts", title: "Alerts", key: "a", icon: "bell", group: "Watch", needs: PROJECT },
  { page: "query", title: "Query", key: "q", icon: "prompt", group: "Ask", needs: PROJECT },
  { page: "events", title: "Events", key: "e", icon: "list", group: "Ask", needs: PROJECT },
  { page: "lineage", title: "Lineage", key: "l", icon: "branch", group: "Ask", needs: PROJECT },
  {
    page: "quality",
    title: "Data quality",
    key: "d",
    icon: "shield",
    group: "Trust",
    needs: PROJECT,
  },
  { page: "runs", title: "Runs", key: "r", icon: "layers", group: "Trust", needs: PROJECT },
  { page: "system", title: "System", key: "s", icon: "cpu", group: "Run", needs: PROJECT },
  { page: "jobs", title: "Jobs", key: "j", icon: "play", group: "Run", needs: "/v1/jobs" },
  { page: "users", title: "Users", key: "u", icon: "user", group: "Run", needs: "/v1/users" },
];

export const HOME: Place = { page: "topology", name: null, query: {} };

export function parse(fragment: string): Place {
  const text = fragment.replace(/^#\/?/, "");
  const [path = "", query = ""] = split(text, "?");
  const [page = "", name = ""] = split(path, "/");
  if (!PAGES.some((known) => known.page === page)) return HOME;
  return {
    page,
    name: name ? decoded(name) : null,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

export function link(
  page: string,
  name?: string | null,
  query: Record<string, string> = {},
): string {
  const asked = new URLSearchParams(query).toString();
  const path = name ? `${page}/${encodeURIComponent(name)}` : page;
  return `#/${path}${asked ? `?${asked}` : ""}`;
}

/** The address of the server whose job this console shows; null if it is not a job. */
export function serverAbove(path: string): string | null {
  return /^(.*\/)v1\/jobs\/[^/]+\/api\/$/.exec(path)?.[1] ?? null;
}

/** The code of `#login=CODE`, which is exchanged for a session and then removed. */
export function loginCode(fragment: string): string | null {
  return /^#login=(.+)$/.exec(fragment)?.[1] ?? null;
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
