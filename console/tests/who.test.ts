import { describe, expect, it } from "vitest";
import { allows, narrowed } from "../src/who";
import type { SessionReport } from "../src/wire";

const who = (more: Partial<SessionReport> = {}): SessionReport => ({
  user: "ada",
  job: "shop",
  granted: [],
  may: [],
  on: [],
  ...more,
});
const grant = (on: string, ...operations: string[]) => ({ may: operations[0]!, operations, on });

describe("what one may do", () => {
  it("is nothing until it is granted", () => {
    expect(allows(null, "read", "*")).toBe(false);
    expect(allows(who(), "read", "view:visitors")).toBe(false);
  });
  it("on everything covers everything", () => {
    expect(allows(who({ granted: [grant("*", "manage")] }), "manage", "*")).toBe(true);
    expect(allows(who({ granted: [grant("*", "manage")] }), "read", "*")).toBe(false);
  });
  it("on a name covers this name alone, however it is written", () => {
    const reader = who({ granted: [grant("view:visitors", "read")] });
    expect(allows(reader, "read", "view:Visitors")).toBe(true);
    expect(allows(reader, "read", "view:traffic")).toBe(false);
  });
  it("on a job covers what is in it, not the users and not another job", () => {
    const operator = who({ granted: [grant("job:shop", "audit", "rebuild")] });
    expect(allows(operator, "rebuild", "view:visitors")).toBe(true);
    expect(allows(operator, "rebuild", "job:shop")).toBe(true);
    expect(allows(operator, "rebuild", "job:bank")).toBe(false);
    expect(allows(operator, "audit", "*")).toBe(false);
  });
  it("is no more than the token carries", () => {
    const narrow = who({
      granted: [grant("*", "read", "send")],
      may: ["send"],
      on: ["stream:clicks"],
    });
    expect(allows(narrow, "send", "stream:clicks")).toBe(true);
    expect(allows(narrow, "send", "stream:notes")).toBe(false);
    expect(allows(narrow, "read", "stream:clicks")).toBe(false);
    expect([narrowed(narrow), narrowed(who())]).toEqual([true, false]);
  });
});
