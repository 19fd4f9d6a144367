import { describe, expect, it } from "vitest";
import { forget, keep, keepFor, kept } from "../src/kept";

/** A browser's storage. */
function storage(): Storage {
  const held = new Map<string, string>();
  return {
    get length() {
      return held.size;
    },
    clear: () => held.clear(),
    getItem: (name) => held.get(name) ?? null,
    key: (place) => [...held.keys()][place] ?? null,
    removeItem: (name) => void held.delete(name),
    setItem: (name, value) => void held.set(name, value),
  };
}

describe("what the browser keeps of a user's work", () => {
  it("is there for the same user", () => {
    const place = storage();
    keepFor("ada", place);
    keep("history", ["SELECT 1"], place);
    keepFor("ada", place);
    expect(kept("history", [], place)).toEqual(["SELECT 1"]);
  });
  it("leaves the browser at sign-out, and nothing else does", () => {
    const place = storage();
    place.setItem("headrace.theme", "dark");
    keepFor("ada", place);
    for (const name of ["query", "history", "parameters"]) keep(name, "secret", place);
    forget(place);
    expect(JSON.stringify([...Array(place.length).keys()].map((at) => place.key(at)))).toBe(
      '["headrace.theme"]',
    );
    expect(kept("history", [], place)).toEqual([]);
  });
  it("is not shown to the next user where nobody signed out", () => {
    const place = storage();
    keepFor("ada", place);
    keep("history", ["SELECT 1"], place);
    keepFor("bob", place);
    expect(kept("history", [], place)).toEqual([]);
    keepFor("ada", place);
    expect(kept("history", [], place)).toEqual([]);
  });
  it("is what was first meant where it cannot be read", () => {
    const place = storage();
    place.setItem("headrace.kept.history", "{");
    expect(kept("history", 7, place)).toBe(7);
  });
});
