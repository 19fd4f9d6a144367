/** Epochs by phase, generations with their audits, and rebuilds. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { clock, count, duration, plural, position, rate } from "../format";
import { status } from "../live";
import { phaseNames, segments } from "../phases";
import { amend, place } from "../place";
import { link } from "../routes";
import { useStore } from "../store";
import { Legend } from "../ui/chart";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import { Ago, Badge, Empty, Notice, Panel, Stat, Stats, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import { allows, me } from "../who";
import type { EpochInfo, Epochs, GenerationInfo } from "../wire";
import { Result } from "./explanation";
import { RebuildButton, RebuildProgress } from "./rebuild";

const SHOWN = 40;

export function RunsPage() {
  const { query } = useStore(place);
  const project = useStore(status);
  const streams = project?.streams.map((stream) => stream.name) ?? [];
  const stream = query.stream && streams.includes(query.stream) ? query.stream : undefined;
  const { value, problem } = useAsked(
    () => api.ask("epochs", { stream, limit: 200 }),
    [stream],
    2000,
  );
  return (
    <>
      <PageHead
        title="Runs"
        about="an epoch is one committed step of speed, a generation one promoted answer of batch"
      >
        <select
          class="input"
          aria-label="Stream"
          value={stream ?? ""}
          onChange={(event) => amend({ stream: event.currentTarget.value || null })}
        >
          <option value="">all streams</option>
          {streams.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </PageHead>
      <div class="content">
        {problem && <Notice of={problem} />}
        {!value && !problem && <Waiting />}
        {value && (
          <>
            <Summary of={value} />
            <Panel
              title="Epochs"
              note={`the newest ${count(Math.min(SHOWN, value.epochs.length))} of ${count(value.epochs_total)} kept`}
            >
              {value.epochs.length ? (
                <Phases of={value.epochs.slice(0, SHOWN)} />
              ) : (
                <Empty title="No epoch yet">
                  <p>The first one follows the first event.</p>
                </Empty>
              )}
            </Panel>
            <div class="columns">
              <Generations of={value} />
              <Rebuild
                views={
                  project?.views.filter((view) => view.kind !== "read").map((view) => view.name) ??
                  []
                }
              />
            </div>
          </>
        )}
      </div>
    </>
  );
}

const compared = (of: GenerationInfo) => of.audits.filter((audit) => audit.changed !== null);

function Summary({ of }: { of: Epochs }) {
  const { epochs, generations } = of;
  const times = epochs.map((epoch) => epoch.ms).sort((a, b) => a - b);
  const events = epochs.reduce((sum, epoch) => sum + epoch.events, 0);
  const spent = times.reduce((sum, ms) => sum + ms, 0);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
  const audits = generations.flatMap(compared);
  const differences = audits.reduce((sum, audit) => sum + audit.differences, 0);
  return (
    <Stats>
      <Stat
        name="Epochs listed"
        value={count(epochs.length)}
        note={`of ${count(of.epochs_total)} kept, ${plural(events, "event")}`}
      />
      <Stat name="Median epoch" value={duration(at(0.5))} />
      <Stat name="95 of 100 within" value={duration(at(0.95))} />
      <Stat name="While working" value={rate(spent ? (events / spent) * 1000 : null)} />
      <Stat
        name="Generations listed"
        value={count(generations.length)}
        note={`of ${count(of.generations_total)} kept`}
      />
      <Stat
        name="Audit differences"
        value={audits.length ? count(differences) : "–"}
        tone={differences ? "bad" : audits.length ? "ok" : undefined}
      />
    </Stats>
  );
}

function Phases({ of }: { of: EpochInfo[] }) {
  const longest = Math.max(...of.map((epoch) => epoch.ms), 1);
  const names = phaseNames(of);
  const shown = names.slice(0, 5);
  return (
    <div class="stack tight">
      <ul class="phases" aria-label="Epochs by phase">
        {of.map((epoch) => (
          <li
            class="phase-row"
            key={`${epoch.stream} ${epoch.number}`}
            title={`${epoch.stream} ${position(epoch.lower)} to ${position(epoch.upper)}`}
          >
            <span class="num muted">{clock(epoch.committed_at)}</span>
            <div class="track">
              {segments(epoch, shown).map(([name, ms], index) => (
                <i
                  key={name}
                  class={epoch.phases ? `s${index + 1}` : "unknown"}
                  title={`${name} ${duration(ms)}`}
                  style={{ width: `${(100 * ms) / longest}%` }}
                />
              ))}
            </div>
            <span class="num">
              {duration(epoch.ms)} <span class="muted">{plural(epoch.events, "event")}</span>
            </span>
          </li>
        ))}
      </ul>
      <Legend names={shown.length ? [...shown, "other"] : []} />
    </div>
  );
}

function Generations({ of: { generations, generations_total } }: { of: Epochs }) {
  return (
    <Panel
      flush
      title="Generations"
      note={`the newest ${count(generations.length)} of ${count(generations_total)} kept; the audit compares each with what speed had served`}
    >
      {generations.length ? (
        <Table
          label="Generations"
          of={generations}
          keyOf={(one) => `${one.stream} ${one.number}`}
          scroll
          columns={[
            { name: "Stream", show: (one) => one.stream },
            { name: "Number", right: true, show: (one) => one.number },
            { name: "Promoted", show: (one) => <Ago at={one.at} /> },
            { name: "Events", right: true, show: (one) => count(one.events) },
            { name: "Boundary", mono: true, show: (one) => position(one.boundary) },
            {
              name: "Audit",
              show: (one) => {
                const wrong = one.audits.filter((audit) => audit.differences);
                return wrong.length ? (
                  <details>
                    <summary>
                      <Badge tone="bad">{plural(wrong.length, "view")} differ</Badge>
                    </summary>
                    {wrong.map((audit) => (
                      <Result of={audit} key={audit.view} />
                    ))}
                  </details>
                ) : (
                  <Badge tone={compared(one).length ? "ok" : "idle"}>
                    {compared(one).length ? "agrees" : "not compared"}
                  </Badge>
                );
              },
            },
          ]}
        />
      ) : (
        <p class="empty muted">No generation yet.</p>
      )}
    </Panel>
  );
}

function Rebuild({ views }: { views: string[] }) {
  const who = useStore(me);
  const own = views.filter((one) => allows(who, "rebuild", `view:${one}`));
  const [chosen, setChosen] = useState("");
  const name = chosen || own[0];
  return (
    <Panel title="Rebuild">
      <div class="stack tight">
        <p class="muted">
          Compute a view from its whole history and swap it in. The old answer stays until the new
          one is there.
        </p>
        {name ? (
          <>
            <div class="row">
              <select
                class="input grow"
                aria-label="View"
                value={name}
                onChange={(event) => setChosen(event.currentTarget.value)}
              >
                {own.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
              <RebuildButton name={name} kind="" key={name} />
            </div>
            <RebuildProgress name={name} />
          </>
        ) : views.length ? (
          <p>
            That needs <b>rebuild</b> on a view; one who manages users can grant it.
          </p>
        ) : (
          <p>
            No view is kept. <a href={link("query")}>Try a query</a>
          </p>
        )}
      </div>
    </Panel>
  );
}
