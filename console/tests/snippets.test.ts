import { describe, expect, it } from "vitest";
import {
  base,
  createView,
  curlSql,
  curlView,
  filled,
  literal,
  parameters,
  quoted,
} from "../src/snippets";

describe("quoting", () => {
  it("keeps a text one word of the shell", () => expect(quoted("it's")).toBe(`'it'\\''s'`));
  it("escapes what is asked", () => {
    expect(curlView("http://h", "a b", { url: "/x&y" })).toBe(
      `curl -H "Authorization: Bearer $HEADRACE_TOKEN" 'http://h/v1/views/a%20b?url=%2Fx%26y'`,
    );
    expect(curlSql("http://h", "SELECT 'a'")).toContain(`'{"sql":"SELECT '\\''a'\\''"}'`);
  });
});

describe("the address that is asked", () => {
  it("is the server's", () => expect(base("http://h:1/#/query?sql=a/b")).toBe("http://h:1"));
  it("is the job's behind a server of jobs", () => {
    expect(base("http://h:1/v1/jobs/shop/api/#/query")).toBe("http://h:1/v1/jobs/shop/api");
  });
});

describe("parameters", () => {
  it("are found outside of texts, comments and casts", () => {
    expect(parameters("SELECT :a, ':b', x::int -- :c\nWHERE d = :d AND e = :a")).toEqual([
      "a",
      "d",
    ]);
  });
  it("are filled with literals that cannot break out", () => {
    expect(filled("WHERE a = :a AND b = :b AND c = ':a'", { a: "x' OR '1'='1", b: "12.5" })).toBe(
      "WHERE a = 'x'' OR ''1''=''1' AND b = 12.5 AND c = ':a'",
    );
    expect(literal("null")).toBe("null");
  });
});

it("a query becomes a definition", () =>
  expect(createView("v", "SELECT 1;\n")).toBe("CREATE VIEW v AS\nSELECT 1;\n"));
