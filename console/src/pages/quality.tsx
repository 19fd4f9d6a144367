/** Data quality: lateness, duplicates, dead letters, schema drift, and the balance. */

import { api } from "../api";
import { count, duration, percent, plural, short } from "../format";
import { driftOf, height, reasonsOf, SCALE, shareOf, whereDead } from "../quality";
import { link } from "../routes";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import { Ago, Badge, Empty, Notice, Panel, Stat, Stats, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { Balance, StreamQuality } from "../wire";
import { FirstEvent } from "./first-event";

export function QualityPage() {
  const { value, problem } = useAsked(() => api.ask("quality"), [], 5000);
  const off = value?.streams.reduce((sum, stream) => sum + Math.abs(stream.balance.off), 0) ?? 0;
  return (
    <>
      <PageHead title="Data quality" about="totals are of all records, the rest of the newest">
        {value &&
          !problem &&
          (off ? (
            <Badge tone="bad">{count(off)} events unaccounted for</Badge>
          ) : (
            <Badge tone="ok">every event is accounted for</Badge>
          ))}
      </PageHead>
      <div class="content">
        {problem && <Notice of={problem} />}
        {!value && !problem && <Waiting />}
        {value && !value.streams.length && (
          <Panel>
            <Empty title="No stream is defined" />
          </Panel>
        )}
        {value?.streams.map((stream) => (
          <StreamPanel key={stream.name} of={stream} />
        ))}
        {value &&
          value.streams.length > 0 &&
          value.streams.every((stream) => stream.balance.accepted === 0) && <FirstEvent />}
      </div>
    </>
  );
}

function StreamPanel({ of }: { of: StreamQuality }) {
  return (
    <section class="stack" aria-label={`Stream ${of.name}`}>
      <Panel
        title={<a href={link("events", of.name)}>{of.name}</a>}
        note={`${plural(of.sampled, "newest record")} sampled`}
      >
        <Equation of={of.balance} />
      </Panel>
      <Stats>
        <Stat
          name="Late"
          value={count(of.late)}
          note={`${shareOf(of.late, of.taken, "record")} taken by speed`}
        />
        <Stat
          name="Duplicates"
          value={count(of.duplicates)}
          note={shareOf(of.duplicates, of.records, "record")}
        />
        <Stat
          name="Dead letters"
          value={count(of.dead_letters)}
          note={`${shareOf(of.dead_letters, of.records, "record")}, ${whereDead(of)}`}
          tone={of.dead_letters ? "warn" : undefined}
        />
        <Stat name="Undeclared fields" value={count(of.undeclared_total)} note="in raw events" />
      </Stats>
      <div class="columns even">
        <Panel title="How late events are" note={`newest events; ${SCALE}`}>
          {of.sampled ? <Histogram of={of.lateness} /> : <p class="muted">No event yet.</p>}
        </Panel>
        <Panel flush title="Why events could not be read" note={reasonsOf(of)}>
          {of.reasons.length ? (
            <Table
              label="Reasons of dead letters"
              of={of.reasons}
              keyOf={(one) => one.reason}
              columns={[
                {
                  name: "Reason",
                  show: (one) => (
                    <a href={link("events", of.name, { tab: "dead" })}>{one.reason}</a>
                  ),
                },
                { name: "Events", right: true, show: (one) => count(one.events) },
                { name: "Newest", right: true, show: (one) => <Ago at={one.newest_at} /> },
              ]}
            />
          ) : (
            <p class="empty muted">Every event could be read.</p>
          )}
        </Panel>
      </div>
      {(of.undeclared.length > 0 || of.nulls.length > 0) && (
        <div class="columns even">
          <Panel flush title="Drift" note={driftOf(of)}>
            {of.undeclared.length ? (
              <Table
                label="Undeclared fields"
                of={of.undeclared}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Field", mono: true, show: (one) => one.name },
                  { name: "Type", show: (one) => <span class="muted">{one.type}</span> },
                  { name: "Share", right: true, show: (one) => percent(one.share) },
                  { name: "Example", mono: true, clip: true, show: (one) => one.example },
                ]}
              />
            ) : (
              <p class="empty muted">Raw events have the declared fields and no others.</p>
            )}
          </Panel>
          <Panel flush title="Missing values">
            <Table
              label="Missing values"
              of={of.nulls}
              keyOf={(one) => one.column}
              columns={[
                { name: "Column", mono: true, show: (one) => one.column },
                {
                  name: "May be NULL",
                  show: (one) => <span class="muted">{one.nullable ? "yes" : "no"}</span>,
                },
                { name: "NULL", right: true, show: (one) => count(one.nulls) },
                { name: "Share", right: true, show: (one) => percent(one.share) },
              ]}
            />
          </Panel>
        </div>
      )}
    </section>
  );
}

/** accepted − events − duplicates − dead letters, all archived, − in the log = off, which must be
 *  zero. */
export function Equation({ of }: { of: Balance }) {
  const terms: [string, number, string][] = [
    ["accepted", of.accepted, ""],
    ["archived events", of.events, "−"],
    ["archived duplicates", of.duplicates, "−"],
    ["archived dead letters", of.dead_letters, "−"],
    ["still in the log", of.in_log, "−"],
  ];
  return (
    <p class="equation">
      {terms.map(([name, value, sign]) => [
        sign && <i key={`${name}-`}>{sign}</i>,
        <div key={name}>
          <span>{name}</span>
          <b>{count(value)}</b>
        </div>,
      ])}
      <i>=</i>
      <Badge tone={of.off ? "bad" : "ok"}>{count(of.off)}</Badge>
    </p>
  );
}

function Histogram({ of }: { of: StreamQuality["lateness"] }) {
  const most = Math.max(...of.map((bucket) => bucket.events), 1);
  const name = (upTo: number | null, index: number) =>
    upTo === 0
      ? "on time"
      : upTo === null
        ? `> ${duration(of[index - 1]?.up_to_ms)}`
        : `≤ ${duration(upTo)}`;
  return (
    <div
      class="histogram"
      role="img"
      aria-label={of
        .map((bucket, index) => `${name(bucket.up_to_ms, index)}: ${bucket.events}`)
        .join(", ")}
    >
      {of.map((bucket, index) => (
        <div key={index}>
          <span class="num">{bucket.events ? short(bucket.events) : ""}</span>
          <i
            class={bucket.up_to_ms === 0 ? undefined : "late"}
            style={{ height: `${70 * height(bucket.events, most)}%` }}
          />
          <span>{name(bucket.up_to_ms, index)}</span>
        </div>
      ))}
    </div>
  );
}
