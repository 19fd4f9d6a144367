import { expect, it } from "vitest";
import { readDate, serverNow } from "../src/clock";

const NOON = Date.parse("2026-11-16T12:00:00Z");

it("is the server's clock, whatever the browser's shows", () => {
  readDate("Mon, 16 Nov 2026 12:00:00 GMT", NOON - 600_000);
  expect(serverNow(NOON - 600_000 + 30_000)).toBe(NOON + 30_500);
  readDate(null, NOON);
  readDate("yesterday", NOON);
  expect(serverNow(NOON - 600_000)).toBe(NOON + 500);
});
it("is the browser's where they agree as far as can be seen", () => {
  readDate("Mon, 16 Nov 2026 12:00:00 GMT", NOON + 900);
  expect(serverNow(NOON)).toBe(NOON);
});
