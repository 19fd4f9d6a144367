/** What the browser stores for a user: a draft, its parameters, and earlier queries.
 *
 * It is removed at sign-out, and when another user signs in. Settings of the browser itself, such as
 * the theme, stay. tests/kept.test.ts checks it.
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
    // Local storage may be disabled.
  }
}

/** Make this user the owner; remove the data of another user. */
export function keepFor(user: string, place: Storage = localStorage): void {
  if (kept<string | null>("of", null, place) === user) return;
  forget(place);
  keep("of", user, place);
}

export function forget(place: Storage = localStorage): void {
  const names = Array.from({ length: place.length }, (_, at) => place.key(at) ?? "");
  for (const name of names) if (name.startsWith(PREFIX)) place.removeItem(name);
}
