/** Explains the badges of freshness and exactness of an answer. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { count, duration, percent, plural, position } from "../format";
import { Ago, Button, Dialog, Dot, Facts, Notice } from "../ui/parts";
import type { Answer, AuditResult, ViewDetail } from "../wire";

export function Explanation({
  name,
  answer,
  about,
  onClose,
}: {
  name: string;
  answer: Answer;
  about: ViewDetail | null;
  onClose: () => void;
}) {
  return (
    <Dialog title={`Freshness and exactness of ${name}`} kind="side" onClose={onClose}>
      {Object.entries(answer.as_of).map(([stream, as]) => {
        const more = about?.freshness.find((one) => one.stream === stream);
        return (
          <section key={stream} class="stack tight">
            <h2>Stream {stream}</h2>
            <p class="muted">
              Batch has counted every event before the boundary, speed those from there to the
              position. Each event counts once.
            </p>
            <Facts
              of={[
                [
                  "generation",
                  <>
                    {as.generation}
                    {more?.promoted_at && (
                      <span class="muted">
                        {" "}
                        promoted <Ago at={more.promoted_at} />
                      </span>
                    )}
                  </>,
                ],
                ["boundary", position(as.boundary)],
                ["position", position(as.position)],
                ["in the log", more ? position(more.end) : "–"],
                [
                  "not yet counted",
                  <>
                    {plural(as.behind ?? 0, "event")}
                    {as.behind && more?.lag_ms ? `, the oldest for ${duration(more.lag_ms)}` : ""}
                  </>,
                ],
                ["newest epoch", <Ago at={as.committed_at} />],
                ["watermark", as.watermark ? <Ago at={as.watermark} /> : "none yet"],
                ...(as.tables && Object.keys(as.tables).length
                  ? [
                      [
                        "tables",
                        Object.entries(as.tables)
                          .map(([table, version]) => `${table} ${version}`)
                          .join(", "),
                      ] as [string, string],
                    ]
                  : []),
              ]}
            />
            {as.sampled && (
              <p class="warn">
                Speed took {percent(as.sampled.share)} of the events after the boundary;{" "}
                {plural(as.sampled.shed, "event")} wait for batch.
              </p>
            )}
            {as.provisional && (
              <p>
                An event arrived out of order that only batch can process. The next generation will.
              </p>
            )}
          </section>
        );
      })}
      <section class="stack tight">
        <h2>Exactness</h2>
        <ul class="stack tight">
          {Object.entries(answer.columns).map(([column, info]) => {
            const why = about?.columns.find((one) => one.name === column)?.why;
            return (
              <li key={column} class="row">
                <Dot tone={info.exact ? "ok" : "warn"} />
                <code>{column}</code>
                <span class="muted small">
                  {info.exact
                    ? "exact"
                    : `one standard error is ${percent(info.error)} of the ${info.error_of ?? "value"}${why ? `: ${why}` : ""}`}
                </span>
              </li>
            );
          })}
        </ul>
      </section>
      <Audit name={name} about={about} />
    </Dialog>
  );
}

function Audit({ name, about }: { name: string; about: ViewDetail | null }) {
  const [state, setState] = useState<{
    running: boolean;
    result: AuditResult | null;
    problem: Error | null;
  }>({ running: false, result: null, problem: null });
  const run = async () => {
    setState({ running: true, result: null, problem: null });
    try {
      const { audits } = await api.audit(name);
      setState({ running: false, result: audits[0] ?? null, problem: null });
    } catch (error) {
      setState({ running: false, result: null, problem: error as Error });
    }
  };
  return (
    <section class="stack tight">
      <h2>Audit</h2>
      {about?.audit ? (
        <>
          <p class="muted small">
            Before the newest generation was promoted, it was compared with what speed had served
            {about.audited_at && (
              <>
                , <Ago at={about.audited_at} />
              </>
            )}
            .
          </p>
          <Result of={about.audit} />
        </>
      ) : (
        <p class="muted">No generation of it was audited yet.</p>
      )}
      <div class="row">
        <Button kind="tiny" icon="shield" disabled={state.running} onPress={run}>
          {state.running ? "Comparing …" : "Compare with DuckDB now"}
        </Button>
      </div>
      {state.result && <Result of={state.result} />}
      {state.problem && <Notice of={state.problem} />}
    </section>
  );
}

export function Result({ of }: { of: AuditResult }) {
  return (
    <div class="stack tight">
      <p class="row">
        <Dot tone={of.differences ? "bad" : of.changed === null ? "idle" : "ok"} />
        {of.changed === null
          ? "not compared"
          : `${plural(of.compared, "row")} compared, ${of.differences ? `${count(of.differences)} differ` : "none differs"}`}
      </p>
      {of.note && <p class="muted small">{of.note}</p>}
      {of.examples.map((example) => (
        <p class="small mono" key={example}>
          {example}
        </p>
      ))}
    </div>
  );
}
