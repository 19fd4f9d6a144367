/** One view: its live answer, freshness and exactness, late events, and definition. */

import { useState } from "preact/hooks";
import { api, Problem, type Row } from "../api";
import { count, percent, plural } from "../format";
import { exactness, freshness } from "../fresh";
import { connected, link as linked } from "../link";
import { now } from "../live";
import { amend, go, place } from "../place";
import { measureOf, measures, windowColumn } from "../plot";
import { ROWS_MAX } from "../reading";
import { link } from "../routes";
import { base, curlView, pythonView } from "../snippets";
import { useStore } from "../store";
import { AnswerChart, MeasureSelect } from "../ui/chart";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import { Badge, Button, Code, copy, Notice, Panel, Sql, Tabs, Waiting } from "../ui/parts";
import { Rows, Table } from "../ui/table";
import { useView } from "../ui/view";
import type { Answer, ViewDetail } from "../wire";
import { Explanation } from "./explanation";
import { LatePanel } from "./late";
import { RebuildButton, RebuildProgress } from "./rebuild";
import { WhyPanel } from "./why";

const TABS = [
  ["live", "Live"],
  ["late", "Late data"],
  ["definition", "Definition"],
] as const;
type Tab = (typeof TABS)[number][0];

export function ViewPage({ name }: { name: string }) {
  const { query } = useStore(place);
  const { answer, at, problem } = useView(name, 90, query.measure ?? null);
  const about = useAsked(() => api.ask("about_view", { view: name }), [name], 5000);
  const [explained, setExplained] = useState(false);
  const [asked, setAsked] = useState<Row | null>(null);
  const tab: Tab = TABS.find(([key]) => key === query.tab)?.[0] ?? "live";
  const missing = problem instanceof Problem && problem.status === 404;
  return (
    <>
      <PageHead
        title={name}
        about={
          about.value ? (
            <>
              {about.value.kind} view, {about.value.origin}
            </>
          ) : (
            "view"
          )
        }
      >
        {answer && <Badges answer={answer} at={at} onPress={() => setExplained(true)} />}
        {about.value && about.value.kind !== "read" && <RebuildButton name={name} />}
        <Button
          kind="tiny"
          icon="copy"
          onPress={() => copy(curlView(base(location.href), name, { limit: "100" }))}
        >
          curl
        </Button>
        <Button
          kind="tiny"
          icon="copy"
          onPress={() => copy(pythonView(base(location.href), name, { limit: "100" }))}
        >
          Python
        </Button>
        <Button
          kind="tiny"
          icon="prompt"
          onPress={() => go("query", null, { sql: `SELECT * FROM ${name}` })}
        >
          Query
        </Button>
      </PageHead>
      <div class="content">
        <Tabs
          label="Parts of the view"
          of={TABS}
          value={tab}
          onChange={(next) => amend({ tab: next === "live" ? null : next })}
        />
        {problem && <Notice of={problem} tone={missing ? "bad" : "warn"} />}
        {!missing && <RebuildProgress name={name} />}
        {tab === "live" && (
          <Live
            name={name}
            answer={answer}
            about={about.value}
            failed={Boolean(problem)}
            onWhy={setAsked}
          />
        )}
        {tab === "late" && !missing && <LatePanel name={name} />}
        {tab === "definition" && <Definition about={about.value} problem={about.problem} />}
      </div>
      {explained && answer && (
        <Explanation
          name={name}
          answer={answer}
          about={about.value}
          onClose={() => setExplained(false)}
        />
      )}
      {asked && answer && (
        <WhyPanel view={name} row={asked} columns={answer.columns} onClose={() => setAsked(null)} />
      )}
    </>
  );
}

function Live({
  name,
  answer,
  about,
  failed,
  onWhy,
}: {
  name: string;
  answer: Answer | null;
  about: ViewDetail | null;
  failed: boolean;
  onWhy: (row: Row) => void;
}) {
  const { query } = useStore(place);
  if (!answer) return failed ? null : <Waiting />;
  const traced = about ? about.kind !== "read" : true;
  return (
    <div class="stack">
      <Panel
        title="Now"
        actions={
          <MeasureSelect
            of={measures(answer.columns)}
            value={query.measure}
            onChange={(measure) => amend({ measure })}
          />
        }
      >
        {answer.rows.length ? (
          <AnswerChart answer={answer} measure={query.measure} height={260} label={name} />
        ) : (
          <p class="muted">The view is empty: no event belongs to it yet.</p>
        )}
      </Panel>
      <Panel
        flush
        title="Rows"
        note={
          shownOf(answer, query.measure) + (traced ? ", press one to see the events behind it" : "")
        }
      >
        <Rows answer={answer} onPress={traced ? onWhy : undefined} label={`Rows of ${name}`} />
      </Panel>
    </div>
  );
}

/** The number of rows in the table, and of how many in total. */
function shownOf(answer: Answer, wished?: string): string {
  const [shown, all] = [Math.min(answer.rows.length, ROWS_MAX), answer.total ?? answer.rows.length];
  const rows = `${count(shown)} of ${plural(all, "row")}`;
  if (windowColumn(answer.columns)) return `${rows} in the newest windows, the newest first`;
  const measure = measureOf(answer.columns, wished);
  return measure ? `${rows}, the largest ${measure} first` : rows;
}

function Badges({ answer, at, onPress }: { answer: Answer; at: number; onPress: () => void }) {
  useStore(now); // updates the age each second
  const here = connected(useStore(linked));
  const fresh = freshness(answer, performance.now() - at, here);
  const exact = exactness(answer, here);
  return (
    <>
      <Badge tone={fresh.tone} onPress={onPress} title="How fresh: open the explanation">
        {fresh.text}
      </Badge>
      <Badge tone={exact.tone} onPress={onPress} title="How exact: open the explanation">
        {exact.text}
      </Badge>
    </>
  );
}

function Definition({ about, problem }: { about: ViewDetail | null; problem: Error | null }) {
  if (!about) return problem ? <Notice of={problem} /> : <Waiting />;
  const named = (names: string[], empty: string) =>
    names.length ? (
      names.map((one) => <Badge key={one}>{one}</Badge>)
    ) : (
      <span class="muted">{empty}</span>
    );
  return (
    <div class="columns">
      <div class="stack">
        <Panel title="SQL" note={about.origin}>
          <Sql text={about.sql} />
        </Panel>
        <Panel title="How it is kept">
          <Code text={about.explain} wrap />
        </Panel>
      </div>
      <div class="stack">
        <Panel flush title="Columns">
          <Table
            label="Columns"
            of={about.columns}
            keyOf={(column) => column.name}
            columns={[
              { name: "Name", show: (column) => <span class="mono">{column.name}</span> },
              {
                name: "Type",
                show: (column) => (
                  <span class="muted">
                    {column.type ?? "?"}
                    {column.key && ", key"}
                  </span>
                ),
              },
              {
                name: "Exact",
                show: (column) =>
                  column.exact ? (
                    "yes"
                  ) : (
                    <span title={column.why ?? ""}>± {percent(column.error)}</span>
                  ),
              },
            ]}
          />
        </Panel>
        <Panel
          title="Reads and feeds"
          actions={
            <a class="small" href={link("lineage", null, { object: about.name })}>
              Lineage →
            </a>
          }
        >
          <div class="stack tight">
            <div class="row">
              <span class="muted">reads</span>
              {named(about.reads, "nothing")}
            </div>
            <div class="row">
              <span class="muted">feeds</span>
              {named(about.touches, "nothing")}
            </div>
          </div>
        </Panel>
        <Panel flush title="Versions">
          {about.versions.length ? (
            <Table
              label="Versions"
              of={about.versions}
              keyOf={(version) => version.id}
              columns={[
                {
                  name: "Version",
                  show: (version) => <span class="mono">{version.id.slice(0, 12)}</span>,
                },
                {
                  name: "State",
                  show: (version) => (
                    <Badge tone={version.state === "live" ? "ok" : "warn"}>{version.state}</Badge>
                  ),
                },
                {
                  name: "Live since",
                  show: (version) => version.live_at?.slice(0, 19).replace("T", " ") ?? "–",
                },
              ]}
            />
          ) : (
            <p class="empty muted">
              It is computed from other views when it is read, so it has no versions.
            </p>
          )}
        </Panel>
      </div>
    </div>
  );
}
