import { expect, it } from "vitest";
import { conditions, searchParams } from "../src/search";

it("a search becomes conditions", () => {
  expect(conditions("user:ada id:e1 0/120 ann")).toEqual([
    ["field", "user:ada"],
    ["id", "e1"],
    ["place", "0/120"],
    ["key", "ann"],
  ]);
  expect(searchParams("user:ada url:/a:b 1/7").toString()).toBe(
    "field=user%3Aada&field=url%3A%2Fa%3Ab&partition=1&offset=7",
  );
});
