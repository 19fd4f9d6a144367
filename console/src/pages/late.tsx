/** The late events of a view's windows: how many, how late, and which layer has included them. */

import { api } from "../api";
import { cell, count, duration, percent } from "../format";
import { useAsked } from "../ui/hooks";
import { Badge, Notice, Panel, Stat, Stats, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { LateWindow } from "../wire";

export function LatePanel({ name }: { name: string }) {
  const { value, problem } = useAsked(() => api.late(name, 100), [name], 3000);
  if (problem) return <Notice of={problem} tone="warn" />;
  if (!value) return <Waiting />;
  const sum = (of: (window: LateWindow) => number) =>
    value.windows.reduce((total, window) => total + of(window), 0);
  const [late, all] = [sum((w) => w.late), sum((w) => w.late + w.on_time)];
  return (
    <div class="stack">
      <Stats>
        <Stat
          name="Late in these windows"
          value={count(late)}
          note={all ? `${percent(late / all)} of ${count(all)}` : undefined}
        />
        <Stat name="Absorbed by batch" value={count(sum((w) => w.absorbed))} />
        <Stat
          name="Counted by speed"
          value={count(sum((w) => w.waiting))}
          note="until the next generation"
        />
        <Stat
          name="Latest by"
          value={duration(Math.max(0, ...value.windows.map((w) => w.late_by_max_ms ?? 0)))}
        />
      </Stats>
      <Panel
        flush
        title="Windows"
        note={`the newest ${count(value.windows.length)} of ${count(value.total)}; a late event still counts in its window`}
      >
        <Table
          label="Late events by window"
          of={value.windows}
          keyOf={(_, index) => index}
          scroll
          columns={[
            { name: "Window", show: (w) => Object.values(w.key).map(cell).join(" · ") },
            { name: "On time", right: true, show: (w) => count(w.on_time) },
            {
              name: "Late",
              right: true,
              show: (w) => (w.late ? <Badge tone="warn">{count(w.late)}</Badge> : "0"),
            },
            { name: "By at most", right: true, show: (w) => duration(w.late_by_max_ms) },
            { name: "On average", right: true, show: (w) => duration(w.late_by_mean_ms) },
            { name: "Absorbed", right: true, show: (w) => count(w.absorbed) },
            { name: "By generation", right: true, show: (w) => w.absorbed_by ?? "–" },
          ]}
        />
      </Panel>
    </div>
  );
}
