import { describe, expect, it } from "vitest";
import { columnsIn } from "../src/completion";
import type { Catalog, CatalogColumn } from "../src/wire";

const column = (name: string, type: string): CatalogColumn => ({
  name,
  type,
  nullable: true,
  key: false,
  exact: true,
  error: null,
  error_of: "value",
  why: null,
  generated: null,
});
const catalog = {
  streams: [{ name: "clicks", columns: [column("user", "STRING"), column("ms", "BIGINT")] }],
  tables: [],
  views: [
    { name: "visitors", columns: [column("url", "STRING"), column("hits", "BIGINT")] },
    { name: "other", columns: [column("secret", "STRING")] },
  ],
} as unknown as Catalog;
const names = (text: string) => columnsIn(text, catalog).map((one) => one.label);

describe("columns", () => {
  it("are completed by themselves where the query reads their relation", () => {
    expect(names("SELECT  FROM visitors")).toEqual(["url", "hits"]);
    expect(names("SELECT u\nfrom Visitors v WHERE h")).toEqual(["url", "hits"]);
    expect(columnsIn("SELECT FROM clicks", catalog)[1]).toMatchObject({
      detail: "BIGINT of clicks",
    });
  });
  it("are those of all relations that are joined", () =>
    expect(names("SELECT * FROM clicks c JOIN visitors ON c.user = ")).toEqual([
      "user",
      "ms",
      "url",
      "hits",
    ]));
  it("of what is not read are not offered", () => {
    expect(names("SELECT secret")).toEqual([]);
    expect(names("SELECT * FROM nothing")).toEqual([]);
  });
});
