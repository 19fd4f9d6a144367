import { expect, it } from "vitest";
import { at, related } from "../src/lineage";

const lineage = {
  columns: [
    { object: "visits", column: "user", from: [{ object: "clicks", column: "user" }], plain: true },
    { object: "visitors", column: "n", from: [{ object: "visits", column: "user" }], plain: false },
    { object: "visitors", column: "hits", from: [{ object: "visits", column: "*" }], plain: false },
  ],
  touched_by: {},
};

it("a column is related to what it is made of and what is made of it, through all steps", () => {
  expect(related(lineage, at("visits", "user"))).toEqual(
    new Set([at("visits", "user"), at("clicks", "user"), at("visitors", "n")]),
  );
  expect(related(lineage, at("visitors", "hits"))).toEqual(
    new Set([at("visitors", "hits"), at("visits", "*")]),
  );
});
