/** Process, Spark, disk and its remaining time, versions, settings. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { bytes, duration, percent } from "../format";
import { status } from "../live";
import { useStore } from "../store";
import { BarChart } from "../ui/chart";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import { Badge, Facts, Notice, Panel, Stat, Stats, Switch, type Tone, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { SettingInfo, System } from "../wire";

export function SystemPage() {
  const { value, problem } = useAsked(() => api.ask("system"), [], 3000);
  return (
    <>
      <PageHead title="System" about="the process that answers, and what it stands on">
        <a class="button tiny" href="metrics">
          Metrics
        </a>
        <a class="button tiny" href="openapi.json">
          OpenAPI
        </a>
      </PageHead>
      <div class="content">
        {problem && <Notice of={problem} />}
        {!value && !problem && <Waiting />}
        {value && <Shown of={value} />}
      </div>
    </>
  );
}

export function runwayTone(hours: number | null): Tone {
  return hours === null || hours > 24 * 7 ? "ok" : hours > 24 ? "warn" : "bad";
}

function lasts({ growth_bytes_per_hour, runway_hours }: System["disk"]): string {
  if (growth_bytes_per_hour === null) return "–";
  return runway_hours === null ? "it does not grow" : duration(runway_hours * 3_600_000);
}

function Shown({ of: { process, spark, disk, versions, settings } }: { of: System }) {
  // A full disk does not grow any more, because events are refused.
  const full = useStore(status)?.problems.some((problem) => problem.about === "disk");
  const known = disk.growth_bytes_per_hour !== null;
  return (
    <>
      <Stats>
        <Stat
          name="Up"
          value={duration(process.uptime_s === null ? null : process.uptime_s * 1000)}
          note={`process ${process.pid}`}
        />
        <Stat
          name="Memory"
          value={bytes(process.memory_bytes)}
          note={`${bytes(process.kept_rows_bytes)} of it rows of views`}
        />
        <Stat
          name="Spark"
          value={spark.running ? "running" : "stopped"}
          tone={spark.running ? "ok" : "idle"}
          note={spark.master}
        />
        <Stat
          name="Java memory"
          value={bytes(spark.jvm_memory_bytes)}
          note={`${spark.memory} allowed`}
        />
        <Stat
          name="Disk lasts"
          value={full ? "full" : lasts(disk)}
          tone={full ? "bad" : known ? runwayTone(disk.runway_hours) : undefined}
          note={known ? `${bytes(disk.growth_bytes_per_hour)} an hour` : "growth is not known yet"}
        />
      </Stats>
      <div class="columns even">
        <Panel title="Disk" note={disk.path}>
          <div class="stack tight">
            <Facts
              of={[
                [
                  "free",
                  `${bytes(disk.free_bytes)} of ${bytes(disk.total_bytes)} (${percent(disk.free_bytes / disk.total_bytes)})`,
                ],
                ["state", bytes(disk.state_bytes)],
              ]}
            />
            <Parts of={disk.parts} />
          </div>
        </Panel>
        <Panel title="Versions">
          <Facts
            of={Object.entries(versions).map(([name, version]) => [
              name,
              <span class="mono">{version}</span>,
            ])}
          />
        </Panel>
      </div>
      <Settings of={settings} />
    </>
  );
}

function Parts({ of }: { of: Record<string, number> }) {
  const bars = Object.entries(of)
    .map(([name, value]) => ({ name, value, cell: bytes(value) }))
    .sort((a, b) => b.value - a.value);
  return (
    <>
      <h3>Parts</h3>
      <BarChart of={{ bars, others: 0 }} />
    </>
  );
}

function Settings({ of }: { of: SettingInfo[] }) {
  const [which, setWhich] = useState<"changed" | "all">("changed");
  const [text, setText] = useState("");
  const shown = of.filter(
    (one) =>
      (which === "all" || one.changed) &&
      `${one.name} ${one.meaning}`.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <Panel
      flush
      title="Settings"
      note="from headrace.toml"
      actions={
        <>
          <input
            class="input"
            type="search"
            placeholder="Find a setting"
            aria-label="Find a setting"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setWhich("all");
            }}
          />
          <Switch
            label="Which"
            of={
              [
                ["changed", "Changed"],
                ["all", "All"],
              ] as const
            }
            value={which}
            onChange={setWhich}
          />
        </>
      }
    >
      {shown.length ? (
        <Table
          label="Settings"
          of={shown}
          keyOf={(one) => one.name}
          columns={[
            { name: "Setting", mono: true, show: (one) => one.name },
            {
              name: "Value",
              mono: true,
              show: (one) => (
                <>
                  {one.value} {one.changed && <Badge tone="accent">changed</Badge>}
                </>
              ),
            },
            {
              name: "Default",
              mono: true,
              show: (one) => <span class="muted">{one.default}</span>,
            },
            { name: "Meaning", show: (one) => <span class="muted">{one.meaning}</span> },
          ]}
        />
      ) : (
        <p class="empty muted">
          {which === "changed" && !text
            ? "Every setting has its default."
            : "No setting has this name."}
        </p>
      )}
    </Panel>
  );
}
