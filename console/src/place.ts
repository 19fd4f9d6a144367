/** The current route. */

import { link, type Place, parse } from "./routes";
import { store } from "./store";

export const place = store<Place>(parse(location.hash));

window.addEventListener("hashchange", () => place.set(parse(location.hash)));

export function go(page: string, name?: string | null, query: Record<string, string> = {}): void {
  location.hash = link(page, name, query);
}

/** Change the query of the route without a new entry in the history. */
export function amend(query: Record<string, string | null>): void {
  const { page, name, query: before } = place.get();
  const next = { ...before };
  for (const [key, value] of Object.entries(query)) {
    if (value) next[key] = value;
    else delete next[key];
  }
  history.replaceState(null, "", link(page, name, next));
  place.set(parse(location.hash));
}
