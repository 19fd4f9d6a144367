import { describe, expect, it } from "vitest";
import { cell } from "../src/format";
import { compact, parse, pretty, stringify } from "../src/json";
import { keysOf } from "../src/row-key";

describe("numbers of 64 bits", () => {
  const text =
    '{"id":9007199254740993,"low":-9223372036854775808,"safe":9007199254740991,"d":1.0e22,' +
    '"text":"9007199254740993","list":[1763247216000001,1234567890123.5],"a\\"1":{"x":[9007199254740995]}}';
  const read = parse(text) as Record<string, unknown>;
  it("are read as they are written", () =>
    expect(read).toEqual({
      id: 9007199254740993n,
      low: -9223372036854775808n,
      safe: 9007199254740991,
      d: 1e22,
      text: "9007199254740993",
      list: [1763247216000001, 1234567890123.5],
      'a"1': { x: [9007199254740995n] },
    }));
  it("are shown with every digit", () => {
    expect(cell(read.id)).toBe("9,007,199,254,740,993");
    expect(cell([9007199254740993n])).toBe("[9007199254740993]");
  });
  it("name the row that they are the key of", () =>
    expect(
      keysOf(parse('{"id":9007199254740993,"n":3,"tag":null}') as Record<string, unknown>, {
        id: { type: "BIGINT", exact: true, key: true },
        n: { type: "BIGINT", exact: true },
        tag: { type: "STRING", exact: true, key: true },
      }),
    ).toEqual({ id: "9007199254740993", null: "tag" }));
  it("are written as they were read", () => expect(parse(stringify(read))).toEqual(read));
  it("need no care where there are none", () =>
    expect(parse('[1,"a",null]')).toEqual([1, "a", null]));
  it("that are no JSON are refused", () => expect(() => parse("9007199254740993,")).toThrow());
});

describe("a text that is laid out", () => {
  const raw = '{"id": 9007199254740993, "price":1.10, "of": [], "a":[1,{"b, [":"\\"}"}],"e":{}}';
  it("keeps its values", () =>
    expect(pretty(raw)).toBe(
      '{\n  "id": 9007199254740993,\n  "price": 1.10,\n  "of": [],\n  "a": [\n    1,\n    {\n      "b, [": "\\"}"\n    }\n  ],\n  "e": {}\n}',
    ));
  it("is one line again", () =>
    expect(compact(pretty(raw))).toBe(
      '{"id":9007199254740993,"price":1.10,"of":[],"a":[1,{"b, [":"\\"}"}],"e":{}}',
    ));
  it("is left alone if it is no JSON", () => {
    expect(pretty("{oops")).toBe("{oops");
    expect(compact("a b,\n")).toBe("a b,\n");
  });
});
