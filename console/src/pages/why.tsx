/** The events of one row, those left out, and the replay of the row. */

import { useState } from "preact/hooks";
import { api, type Row } from "../api";
import { cell, clock, count, isWindow, plural, position } from "../format";
import { link } from "../routes";
import { keysOf } from "../row-key";
import { useAsked } from "../ui/hooks";
import { Ago, Badge, Dialog, Dot, Facts, Notice, Tabs, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { Answer, TracedRecord } from "../wire";

export function WhyPanel({
  view,
  row,
  columns,
  onClose,
}: {
  view: string;
  row: Row;
  columns: Answer["columns"];
  onClose: () => void;
}) {
  const keys = keysOf(row, columns);
  const [tab, setTab] = useState<"why" | "replay">("why");
  return (
    <Dialog title={`Why this row of ${view}`} kind="side" onClose={onClose}>
      <Facts of={Object.entries(row).map(([name, value]) => [name, cell(value)])} />
      <Tabs
        label="Explanation"
        of={
          [
            ["why", "Events behind it"],
            ["replay", "How it came about"],
          ] as const
        }
        value={tab}
        onChange={setTab}
      />
      {tab === "why" ? <Behind view={view} keys={keys} /> : <History view={view} keys={keys} />}
    </Dialog>
  );
}

function Behind({ view, keys }: { view: string; keys: Record<string, string> }) {
  const { value, problem } = useAsked(() => api.why(view, keys), [view, JSON.stringify(keys)]);
  if (problem) return <Notice of={problem} />;
  if (!value) return <Waiting what="Searching the log" />;
  return (
    <>
      <p class="row">
        <Dot tone={value.agrees ? "ok" : "bad"} />
        {value.sentence}
      </p>
      <RecordsTable of={value.listed} />
      {value.events > value.listed.length && (
        <p class="muted small">{count(value.events - value.listed.length)} more are counted.</p>
      )}
      <section class="stack tight">
        <h3>Left out</h3>
        {value.left_out.map((one) => (
          <details key={one.reason}>
            <summary>
              {one.reason}: {plural(one.events, "event")}
            </summary>
            {one.listed.length > 0 && <RecordsTable of={one.listed} />}
          </details>
        ))}
      </section>
    </>
  );
}

function RecordsTable({ of }: { of: TracedRecord[] }) {
  return (
    <Table
      label="Events"
      of={of}
      keyOf={(seen) => `${seen.stream} ${seen.partition} ${seen.offset}`}
      scroll
      columns={[
        {
          name: "At",
          show: (seen) => (
            <a
              class="mono"
              href={link("events", seen.stream, { trace: `${seen.partition}/${seen.offset}` })}
            >
              {seen.partition}/{seen.offset}
            </a>
          ),
        },
        {
          name: "Event time",
          show: (seen) => (
            <>
              {clock(seen.event_time)} {seen.late && <Badge tone="warn">late</Badge>}
            </>
          ),
        },
        {
          name: "Event",
          mono: true,
          fill: true,
          show: (seen) => <span title={seen.reason ?? undefined}>{seen.raw}</span>,
        },
      ]}
    />
  );
}

function History({ view, keys }: { view: string; keys: Record<string, string> }) {
  const { value, problem } = useAsked(() => api.replay(view, keys), [view, JSON.stringify(keys)]);
  if (problem) return <Notice of={problem} />;
  if (!value) return <Waiting what="Replaying" />;
  return (
    <>
      <p class="row">
        <Dot tone={value.agrees ? "ok" : "bad"} />
        {value.sentence}
      </p>
      {value.earlier > 0 && (
        <p class="muted small">{plural(value.earlier, "earlier step")} not shown.</p>
      )}
      <ol class="steps">
        {value.steps.map((step) => (
          <li key={`${step.what} ${step.number}`}>
            <div>
              <p>
                <b>
                  {step.what} {step.number}
                </b>{" "}
                <span class="muted">
                  <Ago at={step.at} />, {plural(step.events, "event")}
                  {step.late ? `, ${step.late} late` : ""}, up to {position(step.position)}
                </span>
              </p>
              {step.row && (
                <p class="mono">
                  {Object.entries(step.row)
                    .filter(([, v]) => !isWindow(v))
                    .map(([name, v]) => `${name} ${cell(v)}`)
                    .join("  ")}
                </p>
              )}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
