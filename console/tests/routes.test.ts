import { describe, expect, it } from "vitest";
import { reader } from "../src/keys";
import { HOME, link, loginCode, PAGES, parse, serverAbove } from "../src/routes";

describe("routes", () => {
  it("are read back as they were written", () => {
    for (const name of [null, "visitors", "a/b?c#d", "ümlaut 100%"]) {
      for (const query of [{}, { tab: "late", sql: "SELECT 'a&b' -- ?" }] as Record<
        string,
        string
      >[]) {
        expect(parse(link("views", name, query))).toEqual({ page: "views", name, query });
      }
    }
  });
  it("that are unknown lead home", () => {
    for (const text of ["", "#", "#/", "#/nowhere", "#login=abc"])
      expect(parse(text)).toEqual(HOME);
  });
  it("with a broken escape are still routes", () =>
    expect(parse("#/views/%E0%A4%A").name).toBe("%E0%A4%A"));
  it("have one key each", () =>
    expect(new Set(PAGES.map((page) => page.key)).size).toBe(PAGES.length));
});

describe("the server above a job", () => {
  it("is found in the address", () => {
    expect(serverAbove("/v1/jobs/shop/api/")).toBe("/");
    expect(serverAbove("/headrace/v1/jobs/shop/api/")).toBe("/headrace/");
  });
  it("is not there for a project and for the server itself", () => {
    for (const path of ["/", "/headrace/", "/v1/jobs/"]) expect(serverAbove(path)).toBe(null);
  });
});

describe("the code in the address", () => {
  it("is found", () => expect(loginCode("#login=a-b_c")).toBe("a-b_c"));
  it("is not seen elsewhere", () => expect(loginCode("#/views?login=x")).toBe(null));
});

describe("keys", () => {
  const press = (key: string, at = 0, more = {}) => ({
    key,
    at,
    typing: false,
    modified: false,
    ...more,
  });
  it("go to a page after g", () => {
    const read = reader();
    expect(read(press("g"))).toBe(null);
    expect(read(press("v", 500))).toEqual({ go: "views" });
    expect(read(press("v", 600))).toBe(null);
  });
  it("are forgotten after a while", () => {
    const read = reader();
    read(press("g"));
    expect(read(press("v", 5000))).toBe(null);
  });
  it("are text in a field, and the browser's own with Ctrl", () => {
    const read = reader();
    expect(read(press("/", 0, { typing: true }))).toBe(null);
    expect(read(press("?", 0, { modified: true }))).toBe(null);
    expect([read(press("/")), read(press("?"))]).toEqual(["search", "help"]);
  });
});
