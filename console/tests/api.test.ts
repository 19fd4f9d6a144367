import { expect, it } from "vitest";
import { address, questionAddress } from "../src/api";

it("a question has its parameters in the path or behind it", () => {
  expect(questionAddress("topology", {})).toBe("v1/topology");
  expect(questionAddress("about_view", { view: "a b/c" })).toBe("v1/views/a%20b%2Fc/about");
  expect(questionAddress("event", { stream: "clicks", partition: 0, offset: 7 })).toBe(
    "v1/streams/clicks/events/0/7",
  );
  expect(questionAddress("events", { stream: "clicks", field: ["a:1", "b:2"] })).toBe(
    "v1/streams/clicks/events?field=a%3A1&field=b%3A2",
  );
  expect(questionAddress("epochs", { stream: undefined, limit: 5 })).toBe("v1/epochs?limit=5");
});

it("an empty text is a value, and null is none", () => {
  expect(address("views/hits/why", { url: "", user: null })).toBe("v1/views/hits/why?url=");
});
