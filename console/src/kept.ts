/** What the browser remembers of a user's work: a draft, its parameters, the queries of before.
 *
 * It is the user's. Sign-out removes it, and where nobody signed out, the next user's sign-in does.
 * What is of the browser itself, such as the theme, stays. tests/kept.test.ts checks it.
 */

const PREFIX = "headrace.kept.";

/** The value of this name; `first` if it is missing. */
export function kept<T>(name: string, first: T, place: Storage = localStorage): T {
  try {
    const text = place.getItem(PREFIX + name);
    return text === null ? first : (JSON.parse(text) as T);
  } catch {
    return first;
  }
}

export function keep(name: string, value: unknown, place: Storage = localStorage): void {
  try {
    place.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing is still a browser.
  }
}

/** From now on it is this user's; what was another's is removed. */
export function keepFor(user: string, place: Storage = localStorage): void {
  if (kept<string | null>("of", null, place) === user) return;
  forget(place);
  keep("of", user, place);
}

export function forget(place: Storage = localStorage): void {
  const names = Array.from({ length: place.length }, (_, at) => place.key(at) ?? "");
  for (const name of names) if (name.startsWith(PREFIX)) place.removeItem(name);
}
