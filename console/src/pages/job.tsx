/** One job of a server: its problem and what to do, its log, its versions, and commands. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { plural } from "../format";
import { commandsFor, stateTone, trouble, type Verb } from "../jobs";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Code,
  Confirm,
  Dialog,
  Dot,
  Notice,
  Panel,
  Stat,
  Stats,
  say,
  Waiting,
} from "../ui/parts";
import { Table } from "../ui/table";
import { allows, me } from "../who";
import type { JobStatus, JobVersion, VersionList } from "../wire";
import { jobConsole, State, Upload } from "./jobs";

const ICONS: Record<Verb, string> = {
  restart: "refresh",
  pause: "pause",
  resume: "play",
  cancel: "stop",
};

export function JobPage({ name }: { name: string }) {
  const who = useStore(me);
  const asked = useAsked(() => api.ask("job", { job: name }), [name], 1500);
  const versions = useAsked(() => api.ask("versions", { job: name }), [name], 5000);
  const [tail, setTail] = useState(100);
  const log = useAsked(() => api.ask("logs", { job: name, tail }), [name, tail], 3000);
  const [verb, setVerb] = useState<Verb | null>(null);
  const [applying, setApplying] = useState(false);
  const job = asked.value;
  const again = () => {
    asked.again();
    versions.again();
  };
  const all = job ? commandsFor(job) : [];
  const own = all.filter((one) => allows(who, one.operation, `job:${name}`));
  const submits = allows(who, "submit", `job:${name}`);
  const chosen = own.find((one) => one.verb === verb);
  return (
    <>
      <PageHead title={name} about={job ? `job of ${job.owner}` : "job"}>
        {job && <State of={job} />}
        {own.map((one) => (
          <Button
            key={one.verb}
            kind={`tiny${one.verb === "cancel" ? " danger" : ""}`}
            icon={ICONS[one.verb]}
            onPress={() => setVerb(one.verb)}
          >
            {one.name}
          </Button>
        ))}
        <a class="button tiny" href={jobConsole(name)}>
          Console →
        </a>
      </PageHead>
      <div class="content">
        {asked.problem && <Notice of={asked.problem} />}
        {!job && !asked.problem && <Waiting />}
        {job && (
          <>
            <Trouble of={job} />
            <Summary of={job} />
            {own.length < all.length && (
              <p class="muted small">
                You may not{" "}
                {all
                  .filter((one) => !own.includes(one))
                  .map((one) => one.verb)
                  .join(", ")}{" "}
                it: that needs <b>operator</b> on <span class="mono">job:{name}</span>.
              </p>
            )}
            <div class="columns">
              <Log
                of={log.value?.lines ?? null}
                problem={log.problem}
                tail={tail}
                onTail={setTail}
              />
              <VersionTable
                of={versions.value}
                may={submits && job.desired !== "cancelled"}
                job={job}
                onChange={again}
                onApply={() => setApplying(true)}
              />
            </div>
          </>
        )}
      </div>
      {chosen && (
        <Confirm
          title={`${chosen.name} ${name}?`}
          verb={chosen.name}
          danger={chosen.verb === "cancel"}
          onClose={() => setVerb(null)}
          onDo={async () => {
            await api.command(name, chosen.verb);
            say(`${name}: ${chosen.verb} is under way`);
            again();
          }}
        >
          <p>{chosen.means}</p>
        </Confirm>
      )}
      {applying && <Apply name={name} onClose={() => setApplying(false)} onDone={again} />}
    </>
  );
}

function Trouble({ of }: { of: JobStatus }) {
  const said = trouble(of);
  if (!said) return null;
  const tone = stateTone(of.state);
  return (
    <div class={`notice ${tone}`} role="alert">
      <Dot tone={tone} />
      <div class="stack tight">
        <p>
          <strong>{said.says}</strong>
        </p>
        <p>{said.cause}</p>
        <ul class="todo">
          {said.todo.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

const LastDeath = ({ of }: { of: JobStatus["last_death"] }) =>
  of ? (
    <span title={of.why}>
      <Ago at={of.at} />: {of.why}
    </span>
  ) : (
    <>since the last command</>
  );

function Summary({ of }: { of: JobStatus }) {
  const { place } = of;
  return (
    <Stats>
      <Stat name="State" value={of.state} note={trouble(of) ? undefined : of.reason} />
      <Stat name="Is to be" value={of.desired} />
      <Stat
        name="Deaths"
        value={of.deaths}
        tone={of.deaths ? "warn" : undefined}
        note={<LastDeath of={of.last_death} />}
      />
      <Stat
        name="Version"
        value={of.version}
        note={
          <>
            changed <Ago at={of.changed_at} />
          </>
        }
      />
      <Stat
        name="Cores"
        value={place.cores}
        note={place.pool ? `of pool ${place.pool}` : "of this machine"}
      />
      <Stat
        name="Memory"
        value={place.memory}
        note={place.tags.length ? `on ${place.tags.join(", ")}` : undefined}
      />
      <Stat
        name="Process"
        value={of.pid ?? "–"}
        note={
          <>
            submitted <Ago at={of.submitted_at} />
          </>
        }
      />
    </Stats>
  );
}

function Log({
  of,
  problem,
  tail,
  onTail,
}: {
  of: string[] | null;
  problem: Error | null;
  tail: number;
  onTail: (lines: number) => void;
}) {
  return (
    <Panel
      title="Log"
      note="the last lines of its process"
      actions={
        <select
          class="input"
          aria-label="Lines"
          value={tail}
          onChange={(event) => onTail(Number(event.currentTarget.value))}
        >
          {[100, 1000, 10000].map((one) => (
            <option key={one} value={one}>
              {plural(one, "line")}
            </option>
          ))}
        </select>
      }
    >
      {problem && <Notice of={problem} />}
      {of &&
        (of.length ? (
          <Code text={of.join("\n")} wrap end />
        ) : (
          <p class="muted">It has no output yet.</p>
        ))}
    </Panel>
  );
}

function VersionTable({
  of,
  may,
  job,
  onChange,
  onApply,
}: {
  of: VersionList | null;
  may: boolean;
  job: JobStatus;
  onChange: () => void;
  onApply: () => void;
}) {
  const [back, setBack] = useState<JobVersion | null>(null);
  const holds = (one: JobVersion) =>
    Object.entries(one.names)
      .filter(([, names]) => names.length)
      .map(([kind, names]) => plural(names.length, kind.replace(/s$/, "")))
      .join(", ");
  return (
    <Panel
      flush
      title="Versions"
      note="each as it was submitted"
      actions={
        may && (
          <Button kind="tiny" icon="plus" onPress={onApply}>
            New version
          </Button>
        )
      }
    >
      {!of ? (
        <p class="empty">
          <Waiting />
        </p>
      ) : (
        <Table
          label={`Versions of ${job.name}`}
          of={of.versions}
          keyOf={(one) => one.number}
          scroll
          columns={[
            {
              name: "Version",
              show: (one) => (
                <span class="row">
                  <strong class="num">{one.number}</strong>
                  {one.number === of.current && <Badge tone="ok">current</Badge>}
                </span>
              ),
            },
            {
              name: "Submitted",
              show: (one) => (
                <>
                  <Ago at={one.submitted_at} /> <span class="muted">by {one.submitted_by}</span>
                </>
              ),
            },
            {
              name: "Has",
              show: (one) => (
                <span class="muted" title={Object.values(one.names).flat().join(", ")}>
                  {holds(one)}
                </span>
              ),
            },
            {
              name: "",
              right: true,
              show: (one) =>
                may &&
                one.number !== of.current && (
                  <Button
                    kind="tiny"
                    label={`Make version ${one.number} current`}
                    onPress={() => setBack(one)}
                  >
                    Roll back
                  </Button>
                ),
            },
          ]}
        />
      )}
      {back && (
        <Confirm
          title={`Make version ${back.number} of ${job.name} current?`}
          verb="Roll back"
          onClose={() => setBack(null)}
          onDo={async () => {
            await api.rollback(job.name, back.number);
            say(`${job.name} goes on as version ${back.number}`);
            onChange();
          }}
        >
          <p>
            It is checked against what the job has now, and swapped in by a restart. Views that
            differ are built beside the old ones.
          </p>
        </Confirm>
      )}
    </Panel>
  );
}

function Apply({
  name,
  onClose,
  onDone,
}: {
  name: string;
  onClose: () => void;
  onDone: () => void;
}) {
  return (
    <Dialog title={`A new version of ${name}`} onClose={onClose}>
      <p>
        From a shell, with a token in <code>HEADRACE_TOKEN</code>:
      </p>
      <Code text={`headrace apply DIR ${name} --server ${location.origin}`} wrap />
      <p>Or a gzipped tar of what is in the project's folder, from here:</p>
      <Upload
        verb="Apply"
        send={(file) => api.submit(name, file, {}, true)}
        onDone={() => {
          say(`${name} has a new version`);
          onDone();
          onClose();
        }}
      />
    </Dialog>
  );
}
