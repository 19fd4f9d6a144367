import { describe, expect, it } from "vitest";
import { grouped, openBySeverity, severityTone } from "../src/alerts";
import type { Alert, Alerts } from "../src/wire";

const alert = (rule: string, number: number): Alert => ({
  id: `${rule}${number}`,
  rule,
  version: 1,
  severity: rule === "noisy" ? "low" : "critical",
  state: "open",
  body: {},
  event_time: "2026-11-16T06:00:00Z",
  raised_at: "2026-11-16T06:00:00Z",
  raised_by: "speed",
  missed: false,
  suppressed_by: null,
  withdrawn_at: null,
  acknowledged_by: null,
  acknowledged_at: null,
  note: null,
  number,
  deliveries: [],
});
const group = (rule: string, severity: string, alerts: number) => ({
  rule,
  severity,
  alerts,
  newest_at: "2026-11-16T06:00:00Z",
});

describe("alerts", () => {
  const found: Alerts = {
    alerts: [alert("break_in", 2), alert("break_in", 1), alert("noisy", 563), alert("noisy", 562)],
    total: 563,
    groups: [
      group("break_in", "critical", 3),
      group("noisy", "low", 560),
      group("late", "info", 1),
    ],
  };
  it("are shown by rule in the order of the server, with its numbers", () => {
    const shown = grouped(found, {});
    expect(shown.map((one) => [one.rule, one.alerts, one.shown.map((a) => a.number)])).toEqual([
      ["break_in", 3, [2, 1]],
      ["noisy", 560, [563, 562]],
      ["late", 1, []],
    ]);
  });
  it("that were asked for later are shown once, after the newest", () => {
    const [, noisy] = grouped(found, { noisy: [alert("noisy", 562), alert("noisy", 561)] });
    expect(noisy!.shown.map((one) => one.number)).toEqual([563, 562, 561]);
  });
  it("have the colour of how grave they are", () =>
    expect(["critical", "high", "medium", "low", "info", "?"].map(severityTone)).toEqual([
      "bad",
      "bad",
      "warn",
      "idle",
      "idle",
      "warn",
    ]));
  it("that are open are counted by severity, the gravest first", () =>
    expect(
      openBySeverity([
        { severity: "low", numbers: { open: 560 } },
        { severity: "critical", numbers: { open: 2 } },
        { severity: "high", numbers: { open: 0 } },
        { severity: "critical", numbers: { open: 1 } },
      ]),
    ).toEqual([
      ["critical", 3],
      ["low", 560],
    ]));
});
