/** The query page: run SQL, show the plan, the rows or a chart, export them, make it a view. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api, Problem } from "../api";
import { type Draft, linked, typed } from "../draft";
import { count, duration, plural } from "../format";
import { exactness } from "../fresh";
import { amend, place } from "../place";
import { measures } from "../plot";
import { firstOf } from "../reading";
import { base, createView, curlSql, filled, parameters, pythonSql } from "../snippets";
import { useStore } from "../store";
import { AnswerChart, MeasureSelect } from "../ui/chart";
import { useKept } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Code,
  copy,
  Dialog,
  Notice,
  Panel,
  Sql,
  Switch,
  say,
  Waiting,
} from "../ui/parts";
import { Rows } from "../ui/table";
import type { Answer, QueryPlan } from "../wire";
import type { Editor } from "./editor";

interface Past {
  sql: string;
  at: number;
  ms: number;
  rows: number | null;
}

interface Answered {
  answer: Answer;
  ms: number;
  sql: string;
}

type Result =
  | { kind: "none" }
  | { kind: "running"; id: string; since: number }
  | ({ kind: "answer" } & Answered)
  | { kind: "plan"; plan: QueryPlan }
  | { kind: "problem"; problem: Error };

const HISTORY_MAX = 50;
const LIMIT = 1000;
export const MEDIA = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;

export function QueryPage() {
  const [kept, keep] = useKept("query", "SELECT * FROM ");
  const [history, setHistory] = useKept<Past[]>("history", []);
  const [values, setValues] = useKept<Record<string, string>>("parameters", {});
  const { query } = useStore(place);
  const [draft, setDraft] = useState<Draft>(() =>
    linked({ text: kept, link: undefined }, query.sql),
  );
  const { text } = draft;
  useEffect(() => {
    setDraft((now) => linked(now, query.sql));
    if (query.sql !== undefined && query.sql !== editor.current?.text())
      editor.current?.setText(query.sql);
  }, [query.sql]);
  const type = (next: string) => {
    setDraft((now) => typed(now, next));
    keep(next);
    const { sql } = place.get().query;
    if (sql !== undefined && sql !== next) amend({ sql: null });
  };
  const [result, setResult] = useState<Result>({ kind: "none" });
  const [asView, setAsView] = useState(false);
  const editor = useRef<Editor | null>(null);
  const names = parameters(text);
  const asked = () => filled(editor.current?.text() ?? text, values);

  const running = useRef<string | null>(null);
  const run = async () => {
    if (running.current) void stop(running.current);
    const sql = asked();
    const id = `console-${crypto.randomUUID?.() ?? Math.random().toString(36).slice(2)}`;
    const since = Date.now();
    running.current = id;
    const show = (next: Result) => {
      // An outdated response is dropped.
      if (running.current !== id) return;
      running.current = null;
      setResult(next);
    };
    setResult({ kind: "running", id, since });
    const remember = (rows: number | null) => {
      const one = { sql: editor.current?.text() ?? sql, at: since, ms: Date.now() - since, rows };
      setHistory([one, ...history.filter((past) => past.sql !== one.sql)].slice(0, HISTORY_MAX));
    };
    try {
      const answer = firstOf(await api.sql(sql, LIMIT + 1, id), LIMIT);
      show({ kind: "answer", answer, ms: Date.now() - since, sql });
      remember(answer.rows.length);
    } catch (error) {
      show({ kind: "problem", problem: error as Error });
      remember(null);
    }
  };
  const explain = async () => {
    try {
      setResult({ kind: "plan", plan: await api.plan(asked()) });
    } catch (error) {
      setResult({ kind: "problem", problem: error as Error });
    }
  };
  const latest = useRef(run);
  latest.current = run;

  return (
    <>
      <PageHead
        title="Query"
        about="views answer from the store; streams and tables from all of history, on Spark"
      >
        <Button kind="tiny" icon="copy" onPress={() => copy(curlSql(base(location.href), asked()))}>
          curl
        </Button>
        <Button
          kind="tiny"
          icon="copy"
          onPress={() => copy(pythonSql(base(location.href), asked()))}
        >
          Python
        </Button>
        <Button kind="tiny" icon="plus" onPress={() => setAsView(true)}>
          Make this a view
        </Button>
      </PageHead>
      <div class="content">
        <div class="columns">
          <div class="stack">
            <EditorHost
              text={text}
              made={editor}
              onRun={() => void latest.current()}
              onChange={type}
            />
            <div class="row">
              {result.kind === "running" ? (
                <Button kind="danger" icon="stop" onPress={() => void stop(result.id)}>
                  Cancel
                </Button>
              ) : (
                <Button kind="primary" icon="play" onPress={() => void run()}>
                  Run
                </Button>
              )}
              <Button onPress={() => void explain()} disabled={result.kind === "running"}>
                Plan
              </Button>
              <span class="muted small">
                <kbd class="kbd">Ctrl</kbd> <kbd class="kbd">Enter</kbd> runs,{" "}
                <kbd class="kbd">:name</kbd> is a parameter
              </span>
            </div>
            {names.length > 0 && (
              <div class="fields">
                {names.map((name) => (
                  <label key={name} class="row">
                    <span class="mono">:{name}</span>
                    <input
                      class="input"
                      value={values[name] ?? ""}
                      onInput={(event) =>
                        setValues({ ...values, [name]: event.currentTarget.value })
                      }
                    />
                  </label>
                ))}
              </div>
            )}
            <div class="result">
              <Shown result={result} />
            </div>
          </div>
          <Panel
            title="History"
            flush
            actions={
              history.length > 0 && (
                <Button kind="quiet tiny" onPress={() => setHistory([])}>
                  Forget
                </Button>
              )
            }
          >
            <HistoryList
              of={history}
              onPick={(sql) => {
                editor.current?.setText(sql);
                editor.current?.focus();
              }}
            />
          </Panel>
        </div>
      </div>
      {asView && <MakeView sql={editor.current?.text() ?? text} onClose={() => setAsView(false)} />}
    </>
  );
}

async function stop(id: string): Promise<void> {
  try {
    await api.cancel(id);
  } catch (error) {
    say((error as Error).message);
  }
}

function EditorHost({
  text,
  made,
  onRun,
  onChange,
}: {
  text: string;
  made: { current: Editor | null };
  onRun: () => void;
  onChange: (text: string) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    let ended = false;
    void import("./editor").then(({ makeEditor }) => {
      // The page may have been left while the editor was loaded.
      if (ended || !host.current) return;
      const editor = makeEditor(host.current, latest.current, { run: onRun, change: onChange });
      made.current = editor;
      // Does not take the focus from a field in which the user types.
      if (document.activeElement === document.body) editor.focus();
      api.ask("catalog").then(
        (catalog) => !ended && editor.setCatalog(catalog),
        () => undefined,
      );
    });
    return () => {
      ended = true;
      made.current?.destroy();
      made.current = null;
    };
  }, []);
  return <div class="editor-host" ref={host} />;
}

function Shown({ result }: { result: Result }) {
  switch (result.kind) {
    case "none":
      return (
        <p class="muted">
          Ask anything: <code>SELECT * FROM</code> a view, a stream or a table.
        </p>
      );
    case "running":
      return <Waiting what="Running" />;
    case "problem":
      return (
        <Notice
          of={result.problem}
          tone={
            result.problem instanceof Problem && result.problem.condition === "Cancelled"
              ? "warn"
              : "bad"
          }
        />
      );
    case "plan":
      return <PlanPanel plan={result.plan} />;
    case "answer":
      return <AnswerPanel {...result} />;
  }
}

function AnswerPanel({ answer, ms, sql }: Answered) {
  const [as, setAs] = useState<"rows" | "chart">("rows");
  const [wished, setWished] = useState<string | null>(null);
  const numbers = measures(answer.columns);
  const exact = exactness(answer, true);
  const { truncated } = answer;
  const rows = plural(answer.rows.length, "row");
  const positions = Object.entries(answer.as_of).map(
    ([stream, of]) => `${stream} up to ${of.position?.map(count).join(" · ") ?? "?"}`,
  );
  return (
    <Panel
      flush={as === "rows"}
      title={truncated ? `${count(answer.rows.length)} of more than ${rows}` : rows}
      note={`${duration(ms)}${truncated ? ", CSV and Parquet have more" : ""}`}
      actions={
        <>
          {as === "chart" && <MeasureSelect of={numbers} value={wished} onChange={setWished} />}
          <Switch
            label="Show as"
            of={
              [
                ["rows", "Rows"],
                ["chart", "Chart"],
              ] as const
            }
            value={as}
            onChange={setAs}
          />
          <Button kind="tiny" icon="download" onPress={() => void save(sql, "csv")}>
            CSV
          </Button>
          <Button kind="tiny" icon="download" onPress={() => void save(sql, "parquet")}>
            Parquet
          </Button>
        </>
      }
    >
      {as === "rows" ? (
        <Rows answer={answer} label="Rows of the answer" most={LIMIT} />
      ) : (
        <AnswerChart answer={answer} measure={wished} height={280} label="The answer" />
      )}
      {positions.length > 0 && (
        <p class="muted small" style={{ padding: "8px 16px" }}>
          <Badge tone={exact.tone}>{exact.text}</Badge> {positions.join(", ")}
        </p>
      )}
    </Panel>
  );
}

async function save(sql: string, kind: keyof typeof MEDIA): Promise<void> {
  try {
    const url = URL.createObjectURL(await api.export(sql, MEDIA[kind]));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = `answer.${kind}`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } catch (error) {
    say((error as Error).message);
  }
}

function PlanPanel({ plan }: { plan: QueryPlan }) {
  return (
    <Panel
      title="Plan"
      note={
        <>
          answered by{" "}
          {plan.by === "store" ? "the store, without Spark" : "Spark, over all of history"}
        </>
      }
    >
      <div class="stack tight">
        <div class="row">
          <span class="muted">reads</span>
          {plan.relations.map((name) => (
            <Badge key={name}>{name}</Badge>
          ))}
        </div>
        <Sql text={plan.sql} />
        <Code text={plan.plan} />
      </div>
    </Panel>
  );
}

function HistoryList({ of, onPick }: { of: Past[]; onPick: (sql: string) => void }) {
  if (!of.length)
    return <p class="empty muted">The queries that you run are stored here, in this browser.</p>;
  return (
    <div class="table-scroll">
      <table class="table">
        <caption class="hidden-visually">Queries that were run</caption>
        <thead>
          <tr>
            <th scope="col">Query</th>
            <th scope="col" class="right">
              Rows
            </th>
            <th scope="col" class="right">
              When
            </th>
          </tr>
        </thead>
        <tbody>
          {of.map((past) => (
            <tr
              class="press"
              key={past.at}
              tabIndex={0}
              onClick={() => onPick(past.sql)}
              onKeyDown={(event) => {
                if (event.key === "Enter") onPick(past.sql);
              }}
            >
              <td class="mono clip fill" title={past.sql}>
                {past.sql}
              </td>
              <td class="right">
                {past.rows === null ? <Badge tone="bad">failed</Badge> : count(past.rows)}
              </td>
              <td class="right muted">
                <Ago at={past.at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function MakeView({ sql, onClose }: { sql: string; onClose: () => void }) {
  const [name, setName] = useState("my_view");
  const named = parameters(sql);
  return (
    <Dialog title="Make this a view" onClose={onClose}>
      <p>
        Put this into a .sql file of the project and start it again. <code>headrace plan</code>{" "}
        shows beforehand what would be computed.
      </p>
      <label class="row">
        <span class="muted">Name</span>
        <input
          class="input"
          value={name}
          onInput={(event) => setName(event.currentTarget.value.replace(/\W/g, "_"))}
        />
      </label>
      {named.length > 0 && (
        <Notice
          tone="warn"
          of={`a definition has no parameters: replace ${named.map((one) => `:${one}`).join(", ")}`}
        />
      )}
      <Sql text={createView(name || "my_view", sql)} />
    </Dialog>
  );
}
