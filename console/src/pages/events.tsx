/** Events of a stream: newest events, search, the trace of one event, and dead letters. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../api";
import { count, duration, moment, plural } from "../format";
import { compact, pretty } from "../json";
import { status } from "../live";
import { amend, go, place } from "../place";
import { searchParams } from "../search";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Code,
  Dialog,
  Empty,
  Notice,
  Panel,
  say,
  Tabs,
  type Tone,
  Waiting,
} from "../ui/parts";
import { Table } from "../ui/table";
import type { DeadLetter, EventPage, EventRecord } from "../wire";
import { FirstEvent } from "./first-event";
import { TracePanel } from "./trace";

const TABS = [
  ["tail", "Newest"],
  ["dead", "Dead letters"],
  ["send", "Send"],
] as const;

export function EventsPage() {
  const { name, query } = useStore(place);
  const project = useStore(status);
  const streams = project?.streams.map((stream) => stream.name) ?? [];
  const stream = name ?? streams[0] ?? null;
  const tab = TABS.find(([key]) => key === query.tab)?.[0] ?? "tail";
  const [partition, offset] = (query.trace ?? "").split("/");
  const known = project?.streams.find((one) => one.name === stream);
  return (
    <>
      <PageHead
        title="Events"
        about={
          known
            ? `${count(known.balance.accepted)} accepted, source ${known.source}`
            : "as they were received"
        }
      >
        <select
          class="input"
          aria-label="Stream"
          value={stream ?? ""}
          onChange={(event) => go("events", event.currentTarget.value)}
        >
          {streams.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </PageHead>
      <div class="content">
        <Tabs
          label="Events"
          of={TABS}
          value={tab}
          onChange={(next) => amend({ tab: next === "tail" ? null : next })}
        />
        {!stream ? (
          project ? (
            <Panel>
              <Empty title="No stream is defined">
                <p>A stream is where events come in. Define one in a .sql file of the project.</p>
              </Empty>
            </Panel>
          ) : (
            <Waiting />
          )
        ) : tab === "tail" ? (
          <Tail stream={stream} key={stream} />
        ) : tab === "dead" ? (
          <DeadLetters stream={stream} key={stream} />
        ) : (
          <SendPanel stream={stream} key={stream} />
        )}
      </div>
      {stream && partition && offset && (
        <TracePanel
          stream={stream}
          partition={Number(partition)}
          offset={Number(offset)}
          onClose={() => amend({ trace: null })}
        />
      )}
    </>
  );
}

function Tail({ stream }: { stream: string }) {
  const { query } = useStore(place);
  const [text, setText] = useState(query.q ?? "");
  const [older, setOlder] = useState<EventPage[]>([]);
  const [paused, setPaused] = useState(false);
  const asked = query.q ?? "";
  const tail = !asked && !older.length && !paused;
  const { value, problem, loading } = useAsked(
    () => api.events(stream, searchParams(asked)),
    [stream, asked],
    tail ? 2000 : 0,
  );
  useEffect(() => setOlder([]), [stream, asked]);
  const pages = value ? [value, ...older] : [];
  const events = pages.flatMap((page) => page.events);
  const scanned = pages.reduce((sum, page) => sum + page.scanned, 0);
  const doing = tail ? ", follows the log" : loading ? ", scanning …" : " scanned";
  const next = pages.at(-1)?.next ?? null;
  const more = async () => {
    const params = searchParams(asked);
    params.set("before", next!);
    try {
      const page = await api.events(stream, params);
      setOlder((now) => [...now, page]);
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <div class="stack">
      <search>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            amend({ q: text.trim() || null });
          }}
        >
          <input
            class="input grow mono"
            type="search"
            aria-label="Search events"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            placeholder="user:ada   id:e1   status:duplicate   0/120   from:2026-11-16T06:00:00Z"
          />
          <Button submit icon="search">
            Search
          </Button>
          {!asked && (
            <Button kind="quiet" icon={paused ? "play" : "stop"} onPress={() => setPaused(!paused)}>
              {paused ? "Follow" : "Pause"}
            </Button>
          )}
        </form>
      </search>
      {problem && <Notice of={problem} />}
      {!value && !problem && <Waiting />}
      {value &&
        !events.length &&
        (asked ? (
          <Panel>
            <Empty title="No matching event">
              <p>{plural(value.scanned, "record")} scanned.</p>
            </Empty>
          </Panel>
        ) : (
          <FirstEvent stream={stream} />
        ))}
      {events.length > 0 && (
        <Panel
          flush
          title={asked ? plural(events.length, "event") : "Newest"}
          note={`${count(tail ? events.length : scanned)} of ${plural(pages[0]!.total, "record")}${doing}`}
        >
          <Table
            label="Events"
            of={events}
            keyOf={(event) => `${event.partition}/${event.offset}`}
            onPress={(event) => amend({ trace: `${event.partition}/${event.offset}` })}
            columns={COLUMNS}
          />
          {next && (
            <div class="row" style={{ padding: "10px 16px" }}>
              <Button kind="tiny" onPress={() => void more()}>
                Older
              </Button>
            </div>
          )}
        </Panel>
      )}
    </div>
  );
}

const STATUS: Record<EventRecord["status"], Tone> = {
  event: "idle",
  duplicate: "warn",
  dead_letter: "bad",
};

const COLUMNS = [
  { name: "Place", mono: true, show: (event: EventRecord) => `${event.partition}/${event.offset}` },
  { name: "Arrived", show: (event: EventRecord) => <Ago at={event.arrived_at} /> },
  {
    name: "Event time",
    show: (event: EventRecord) => <span class="nowrap">{moment(event.event_time)}</span>,
  },
  {
    name: "Became",
    show: (event: EventRecord) => (
      <span class="row">
        {event.status === "event" ? (
          <span class="muted">event</span>
        ) : (
          <Badge tone={STATUS[event.status]}>{event.status.replace("_", " ")}</Badge>
        )}
        {event.late && <Badge tone="warn">late {duration(event.lateness_ms)}</Badge>}
      </span>
    ),
  },
  { name: "Event", mono: true, fill: true, show: (event: EventRecord) => event.raw },
];

const LETTERS = 100;

function DeadLetters({ stream }: { stream: string }) {
  const { value, problem } = useAsked(
    () => api.ask("dead_letters", { stream, limit: LETTERS }),
    [stream],
    4000,
  );
  const [chosen, setChosen] = useState<DeadLetter | null>(null);
  if (!value) return problem ? <Notice of={problem} /> : <Waiting />;
  if (!value.dead_letters.length)
    return (
      <Panel>
        <Empty title="No dead letters">
          <p>
            Every event of {stream} could be read. One that cannot is kept here with the reason and
            its bytes.
          </p>
        </Empty>
      </Panel>
    );
  return (
    <>
      {problem && <Notice of={problem} />}
      <Panel
        flush
        title={plural(value.total, "dead letter")}
        note={`the newest ${count(value.dead_letters.length)}; press one to fix it and send it again`}
      >
        <Table
          label="Dead letters"
          of={value.dead_letters}
          keyOf={(one) => `${one.partition}/${one.offset}`}
          onPress={setChosen}
          columns={[
            { name: "Place", mono: true, show: (one) => `${one.partition}/${one.offset}` },
            { name: "Arrived", show: (one) => <Ago at={one.arrived_at} /> },
            {
              name: "Reason",
              clip: true,
              show: (one) => <span title={one.reason}>{one.reason}</span>,
            },
            { name: "Bytes", mono: true, fill: true, show: (one) => one.raw },
          ]}
        />
      </Panel>
      {chosen && <FixPanel stream={stream} letter={chosen} onClose={() => setChosen(null)} />}
    </>
  );
}

function FixPanel({
  stream,
  letter,
  onClose,
}: {
  stream: string;
  letter: DeadLetter;
  onClose: () => void;
}) {
  return (
    <Dialog
      title={`Dead letter ${letter.partition}/${letter.offset}`}
      kind="side"
      onClose={onClose}
    >
      <Notice of={letter.reason} />
      <section class="stack tight">
        <h2>As it was received</h2>
        <Code text={letter.raw} wrap />
      </section>
      <section class="stack tight">
        <h2>Fix it and send it again</h2>
        <p class="muted small">
          The letter stays where it is: history does not change. What you send is a new event.
        </p>
        <SendForm stream={stream} text={pretty(letter.raw)} onSent={onClose} />
      </section>
    </Dialog>
  );
}

function SendPanel({ stream }: { stream: string }) {
  const { value } = useAsked(() => api.ask("catalog"), []);
  const declared = value?.streams.find((one) => one.name === stream);
  const first = useMemo(() => pretty(declared?.sample ?? ""), [declared]);
  return (
    <div class="columns even">
      <Panel title={`Send to ${stream}`}>
        <SendForm stream={stream} text={first} key={first} />
      </Panel>
      <FirstEvent stream={stream} title="From a shell" />
    </div>
  );
}

function SendForm({
  stream,
  text: first,
  onSent,
}: {
  stream: string;
  text: string;
  onSent?: () => void;
}) {
  const [text, setText] = useState(first);
  const [problem, setProblem] = useState<Error | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    setProblem(null);
    try {
      // One event per line; a text that is not valid JSON is sent unchanged.
      const receipt = await api.send(stream, compact(text));
      const [at] = receipt.offsets;
      say(
        receipt.duplicates
          ? "It is a duplicate: an event with this id was there before"
          : `On disk${at ? ` at ${at.partition}/${at.first_offset}` : ""}`,
      );
      onSent?.();
    } catch (error) {
      setProblem(error as Error);
    }
  };
  return (
    <form class="stack tight" onSubmit={send}>
      <textarea
        class="input"
        rows={8}
        aria-label="Event"
        value={text}
        required
        placeholder='{"user": "ada"}'
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="row">
        <Button kind="primary" submit icon="arrow">
          Send
        </Button>
      </div>
      {problem && <Notice of={problem} />}
    </form>
  );
}
