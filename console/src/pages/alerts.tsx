/** Live alerts by rule, with their rows; acknowledge and mute. */

import { useEffect, useState } from "preact/hooks";
import { grouped, openBySeverity, type ShownGroup, severityTone } from "../alerts";
import { api } from "../api";
import { cell, count, moment, plural } from "../format";
import { alertsHeard, status } from "../live";
import { amend, place } from "../place";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Dialog,
  Dot,
  Empty,
  Facts,
  Notice,
  Panel,
  Sql,
  say,
  Waiting,
} from "../ui/parts";
import { Table } from "../ui/table";
import type { Alert, RuleStatus } from "../wire";

/** The number of alerts of each rule that are shown first, and that are added per page. */
const FIRST = 20;
const MORE = 100;
const STATES = ["open", "acknowledged", "suppressed", "muted", "backfilled", "all"] as const;

export function AlertsPage() {
  const { query } = useStore(place);
  const project = useStore(status);
  const heard = useStore(alertsHeard);
  const state = STATES.find((one) => one === query.state) ?? "open";
  const rule = query.rule || undefined;
  const wanted = { rule, state: state === "all" ? undefined : state };
  const asked = useAsked(
    () => api.ask("alerts", { ...wanted, each: FIRST, limit: 1000 }),
    [rule, state],
    5000,
  );
  const [older, setOlder] = useState<Record<string, Alert[]>>({});
  useEffect(() => setOlder({}), [rule, state]);
  const more = async ({ rule: of, shown }: ShownGroup) => {
    try {
      const before = shown.at(-1)?.number;
      const page = await api.ask("alerts", { ...wanted, rule: of, limit: MORE, before });
      setOlder((now) => ({ ...now, [of]: [...(now[of] ?? []), ...page.alerts] }));
    } catch (error) {
      say((error as Error).message);
    }
  };
  const [chosen, setChosen] = useState<Alert | null>(null);
  useEffect(() => {
    if (heard.length) asked.again();
  }, [heard]);
  const rules = project?.rules ?? [];
  if (project && !rules.length) return <NoRules />;
  const groups = asked.value ? grouped(asked.value, older) : [];
  return (
    <>
      <PageHead
        title="Alerts"
        about={
          asked.value
            ? `${count(asked.value.total)} ${state === "all" ? "in all" : state}, of ${plural(groups.length, "rule")}`
            : "what rules have found"
        }
      >
        {openBySeverity(rules).map(([severity, open]) => (
          <Badge key={severity} tone={severityTone(severity)}>
            {count(open)} {severity} open
          </Badge>
        ))}
        <select
          class="input"
          aria-label="Rule"
          value={rule ?? ""}
          onChange={(event) => amend({ rule: event.currentTarget.value || null })}
        >
          <option value="">all rules</option>
          {rules.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
        <select
          class="input"
          aria-label="State"
          value={state}
          onChange={(event) => amend({ state: event.currentTarget.value })}
        >
          {STATES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </PageHead>
      <div class="content">
        {asked.problem && <Notice of={asked.problem} />}
        {!asked.value && !asked.problem && <Waiting />}
        {asked.value && !groups.length && (
          <Panel>
            <Empty title={state === "open" ? "Nothing is open" : "No such alert"}>
              <p>Rules are evaluated with every epoch; new alerts appear here.</p>
            </Empty>
          </Panel>
        )}
        {groups.map((group) => (
          <Group
            key={group.rule}
            of={group}
            rule={rules.find((one) => one.name === group.rule) ?? null}
            onChoose={setChosen}
            onMore={() => void more(group)}
            onMuted={asked.again}
          />
        ))}
      </div>
      {chosen && (
        <AlertPanel
          id={chosen.id}
          rule={rules.find((one) => one.name === chosen.rule) ?? null}
          onClose={() => setChosen(null)}
          onChange={asked.again}
        />
      )}
    </>
  );
}

function Group({
  of,
  rule,
  onChoose,
  onMore,
  onMuted,
}: {
  of: ShownGroup;
  rule: RuleStatus | null;
  onChoose: (alert: Alert) => void;
  onMore: () => void;
  onMuted: () => void;
}) {
  const fields = [...new Set(of.shown.flatMap((alert) => Object.keys(alert.body)))].slice(0, 5);
  return (
    <Panel
      flush
      title={
        <span class="row">
          <Dot tone={severityTone(of.severity)} />
          {of.rule}
        </span>
      }
      note={
        <>
          {of.severity}, {count(of.shown.length)} of {plural(of.alerts, "alert")}, newest{" "}
          <Ago at={of.newest_at} />
        </>
      }
      actions={
        <>
          {rule && rule.numbers.muted > 0 && <Badge>{count(rule.numbers.muted)} muted</Badge>}
          <Mute rule={of.rule} onMuted={onMuted} />
        </>
      }
    >
      <Table
        label={`Alerts of ${of.rule}`}
        of={of.shown}
        keyOf={(alert) => alert.id}
        onPress={onChoose}
        scroll
        columns={[
          { name: "Raised", show: (alert) => <Ago at={alert.raised_at} /> },
          { name: "Event time", show: (alert) => moment(alert.event_time) },
          ...fields.map((field) => ({
            name: field,
            clip: true,
            show: (alert: Alert) => cell(alert.body[field]),
          })),
          {
            name: "State",
            show: (alert) => (
              <Badge tone={alert.state === "open" ? severityTone(alert.severity) : "idle"}>
                {alert.withdrawn_at ? "withdrawn" : alert.state}
              </Badge>
            ),
          },
        ]}
      />
      {of.shown.length < of.alerts && (
        <div class="row" style={{ padding: "10px 16px" }}>
          <Button kind="tiny" onPress={onMore}>
            {of.shown.length ? "Older" : "Show"}
          </Button>
        </div>
      )}
    </Panel>
  );
}

function Mute({ rule, onMuted }: { rule: string; onMuted: () => void }) {
  const mute = async (length: string) => {
    if (!length) return;
    try {
      const { until } = await api.mute(rule, length);
      say(`${rule} notifies nobody until ${moment(until)}`);
      onMuted();
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <select
      class="input"
      aria-label={`Mute ${rule}`}
      value=""
      onChange={(event) => void mute(event.currentTarget.value)}
    >
      <option value="">Mute …</option>
      {["15m", "1h", "8h", "24h"].map((length) => (
        <option key={length} value={length}>
          for {length}
        </option>
      ))}
    </select>
  );
}

function AlertPanel({
  id,
  rule,
  onClose,
  onChange,
}: {
  id: string;
  rule: RuleStatus | null;
  onClose: () => void;
  onChange: () => void;
}) {
  const { value, problem, again } = useAsked(() => api.ask("alert", { alert: id }), [id]);
  const [note, setNote] = useState("");
  const acknowledge = async () => {
    try {
      await api.acknowledge(id, note);
      again();
      onChange();
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    <Dialog
      title={value ? `${value.rule}, ${value.severity}` : "Alert"}
      kind="side"
      onClose={onClose}
    >
      {problem && <Notice of={problem} />}
      {value && (
        <>
          <Facts
            of={[
              ["state", value.state],
              ["event time", moment(value.event_time)],
              [
                "raised",
                <>
                  <Ago at={value.raised_at} /> by {value.raised_by}
                </>,
              ],
              ...(value.acknowledged_by
                ? [
                    [
                      "acknowledged",
                      <>
                        by {value.acknowledged_by} <Ago at={value.acknowledged_at} />
                        {value.note && `: ${value.note}`}
                      </>,
                    ] as [string, preact.ComponentChildren],
                  ]
                : []),
              ...(value.withdrawn_at
                ? [
                    ["withdrawn", <Ago at={value.withdrawn_at} />] as [
                      string,
                      preact.ComponentChildren,
                    ],
                  ]
                : []),
              ["id", <span class="mono">{value.id}</span>],
            ]}
          />
          <section class="stack tight">
            <h2>What matched</h2>
            <Facts
              of={Object.entries(value.body).map(([name, of]) => [
                name,
                <span class="mono">{cell(of)}</span>,
              ])}
            />
          </section>
          {value.state === "open" && (
            <div class="row">
              <input
                class="input grow"
                placeholder="A note (optional)"
                aria-label="Note"
                value={note}
                onInput={(event) => setNote(event.currentTarget.value)}
              />
              <Button kind="primary" icon="check" onPress={() => void acknowledge()}>
                Acknowledge
              </Button>
            </div>
          )}
          <section class="stack tight">
            <h2>Notifications</h2>
            {value.deliveries.length ? (
              value.deliveries.map((one) => (
                <p class="row" key={one.action}>
                  <Dot
                    tone={
                      one.state === "delivered" ? "ok" : one.state === "failed" ? "bad" : "warn"
                    }
                  />
                  {one.action}
                  <span class="muted">
                    {one.state}
                    {one.reason && `: ${one.reason}`}
                  </span>
                </p>
              ))
            ) : (
              <p class="muted">It notified nobody.</p>
            )}
          </section>
          {rule && (
            <section class="stack tight">
              <h2>Rule, version {value.version}</h2>
              <Sql text={rule.text} />
            </section>
          )}
        </>
      )}
    </Dialog>
  );
}

const EXAMPLE = `CREATE RULE slow AS
SELECT * FROM clicks WHERE ms > 5000
SEVERITY 'high' SUPPRESS FOR INTERVAL 10 MINUTES PER user;`;

function NoRules() {
  return (
    <>
      <PageHead title="Alerts" />
      <div class="content">
        <Panel>
          <Empty title="No rule is defined" command={EXAMPLE}>
            <p>
              A rule raises an alert for each row that it finds, once, and may notify somebody. Put
              one into a .sql file of the project.
            </p>
          </Empty>
        </Panel>
      </div>
    </>
  );
}
