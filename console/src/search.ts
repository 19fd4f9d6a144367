/** Searching events. Pure: tests/search.test.ts checks it. */

/** Parses the search text into conditions: `user:ada id:e1 status:duplicate 0/120 from:… to:…`. */
export function conditions(text: string): [string, string][] {
  const OWN = new Set(["id", "key", "from", "to", "status", "partition", "offset"]);
  return text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word): [string, string] => {
      const placed = /^(\d+)\/(\d+)$/.exec(word);
      if (placed) return ["place", word];
      const colon = word.indexOf(":");
      const name = word.slice(0, colon);
      if (colon > 0 && OWN.has(name)) return [name, word.slice(colon + 1)];
      return colon > 0 ? ["field", word] : ["key", word];
    });
}

export function searchParams(text: string): URLSearchParams {
  const asked = new URLSearchParams();
  for (const [name, value] of conditions(text)) {
    if (name === "place") {
      const [partition, offset] = value.split("/");
      asked.set("partition", partition!);
      asked.set("offset", offset!);
    } else if (name === "field") asked.append("field", value);
    else asked.set(name, value);
  }
  return asked;
}
