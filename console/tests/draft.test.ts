import { describe, expect, it } from "vitest";
import { type Draft, linked, typed } from "../src/draft";

const kept: Draft = { text: "SELECT 1", link: undefined };

describe("the text of the editor", () => {
  it("is what a link says, also while the page is open", () => {
    const first = linked(kept, "SELECT 2");
    expect(first.text).toBe("SELECT 2");
    expect(linked(first, "SELECT 3").text).toBe("SELECT 3");
  });
  it("is what was typed after that, and the address says nothing any more", () => {
    const edited = typed(linked(kept, "SELECT 2"), "SELECT 2 + 2");
    expect(edited).toEqual({ text: "SELECT 2 + 2", link: undefined });
    expect(linked(edited, undefined)).toEqual(edited);
  });
  it("is what the same link says when it is followed again", () => {
    const edited = typed(linked(kept, "SELECT 2"), "SELECT 9");
    expect(linked(edited, "SELECT 2").text).toBe("SELECT 2");
  });
});
