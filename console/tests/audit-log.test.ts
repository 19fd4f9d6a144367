import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../src/wire";
import { matching, spoken } from "../src/audit-log";

const entry = (number: number, more: Partial<AuditEntry> = {}): AuditEntry => ({
  number, at: "2026-11-16T09:00:00Z", user: "ada", token: "9c1f0e6a", what: "add_grant", object: "user:bob",
  decision: "allowed", request: "r1", detail: "viewer on *", ...more,
});
const all = [entry(3), entry(2, { user: "bob", what: "users", object: "*", decision: "refused", detail: "bob may not manage everything" }), entry(1, { what: "add_user" })];
const numbers = (wanted: Parameters<typeof matching>[1]) => matching(all, wanted).map((one) => one.number);

describe("entries of the audit log", () => {
  it("are all shown if nothing is wanted", () => expect(numbers({})).toEqual([3, 2, 1]));
  it("are chosen by decision and by what was done", () => {
    expect(numbers({ decision: "refused" })).toEqual([2]);
    expect(numbers({ what: "add_user" })).toEqual([1]);
  });
  it("are found by all words, wherever they stand", () => {
    expect(numbers({ text: "BOB manage" })).toEqual([2]);
    expect(numbers({ text: "ada nothing" })).toEqual([]);
  });
  it("name routes as one reads them", () => expect(spoken("create_token")).toBe("create token"));
});
