/** The jobs of a server with their states, and how to submit one. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { bytes, plural } from "../format";
import { jobTone, summary } from "../jobs";
import { go, place } from "../place";
import { link } from "../routes";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Code,
  Dialog,
  Dot,
  Empty,
  Notice,
  Panel,
  Stat,
  Stats,
  say,
  Waiting,
} from "../ui/parts";
import { Table } from "../ui/table";
import { allows, EVERYTHING, me } from "../who";
import type { JobStatus, ServerInstance } from "../wire";
import { JobPage } from "./job";

export function JobsPage() {
  const { name } = useStore(place);
  return name ? <JobPage name={name} key={name} /> : <List />;
}

function List() {
  const who = useStore(me);
  const seesAll = allows(who, "read", EVERYTHING);
  const { value, problem, again } = useAsked(() => api.ask("jobs"), [], 2000);
  const domain = useAsked(
    async () => (seesAll ? (await api.ask("domain")).instances : []),
    [seesAll],
    5000,
  );
  const [submitting, setSubmitting] = useState(false);
  const jobs = value?.jobs ?? [];
  return (
    <>
      <PageHead
        title="Jobs"
        about={
          value
            ? `${plural(jobs.length, "job")} that you may read`
            : "projects that this server runs"
        }
      >
        {!problem &&
          summary(jobs).map(({ tone, text }) => (
            <Badge key={text} tone={tone}>
              {text}
            </Badge>
          ))}
        <Button kind="tiny" icon="plus" onPress={() => setSubmitting(true)}>
          Submit a project
        </Button>
      </PageHead>
      <div class="content">
        {problem && <Notice of={problem} />}
        {!value && !problem && <Waiting />}
        {domain.value?.[0] && <Room of={domain.value[0]} jobs={jobs} />}
        {value && (jobs.length ? <JobTable of={jobs} /> : <NoJobs />)}
      </div>
      {submitting && <Submit onClose={() => setSubmitting(false)} onDone={again} />}
    </>
  );
}

function Room({ of, jobs }: { of: ServerInstance; jobs: JobStatus[] }) {
  return (
    <Stats>
      <Stat
        name="Running"
        value={jobs.filter((job) => job.state === "running").length}
        note={`of ${plural(jobs.length, "job")}`}
      />
      <Stat name="Cores given out" value={of.cores_used} note={`of ${of.room.cores}`} />
      <Stat
        name="Memory given out"
        value={bytes(of.memory_used)}
        note={`of ${bytes(of.room.memory)}`}
      />
      <Stat name="Server up since" value={<Ago at={of.started_at} />} note={of.name} />
    </Stats>
  );
}

export const State = ({ of }: { of: JobStatus }) => (
  <Badge tone={jobTone(of)}>
    <Dot tone={jobTone(of)} />
    {of.state}
    {of.problems > 0 && `, ${plural(of.problems, "problem")}`}
  </Badge>
);

/** The address of a job's console, relative to the server's. */
export const jobConsole = (name: string): string => `v1/jobs/${encodeURIComponent(name)}/api/`;

function JobTable({ of }: { of: JobStatus[] }) {
  return (
    <Panel flush title="Jobs" note="press one for its log, its versions and what can be done">
      <Table
        label="Jobs"
        of={of}
        keyOf={(job) => job.name}
        onPress={(job) => go("jobs", job.name)}
        columns={[
          {
            name: "Job",
            show: (job) => (
              <a href={link("jobs", job.name)}>
                <strong>{job.name}</strong>
              </a>
            ),
          },
          { name: "State", show: (job) => <State of={job} /> },
          {
            name: "Reason",
            fill: true,
            show: (job) => (
              <span class="muted" title={job.reason}>
                {job.reason}
              </span>
            ),
          },
          {
            name: "Deaths",
            right: true,
            show: (job) => <span title={job.last_death?.why}>{job.deaths}</span>,
          },
          { name: "Version", right: true, show: (job) => job.version },
          { name: "Cores", right: true, show: (job) => job.place.cores },
          { name: "Memory", right: true, show: (job) => job.place.memory },
          { name: "Owner", show: (job) => job.owner },
          { name: "Changed", show: (job) => <Ago at={job.changed_at} /> },
          {
            name: "",
            right: true,
            show: (job) => (
              <a
                class="nowrap"
                href={jobConsole(job.name)}
                onClick={(event) => event.stopPropagation()}
              >
                Console →
              </a>
            ),
          },
        ]}
      />
    </Panel>
  );
}

const command = (): string => `headrace submit DIR --server ${location.origin}`;

function NoJobs() {
  return (
    <Panel>
      <Empty title="No job that you may read" command={command()}>
        <p>
          A job is a project that this server runs. Submit the folder of one; whoever submits a job
          may change and run it.
        </p>
      </Empty>
    </Panel>
  );
}

function Submit({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState("");
  const [cores, setCores] = useState("1");
  const [memory, setMemory] = useState("");
  const done = () => {
    say(`${name} is a job now`);
    onDone();
    onClose();
    go("jobs", name.trim());
  };
  return (
    <Dialog title="Submit a project" onClose={onClose}>
      <p>
        From a shell, with a token in <code>HEADRACE_TOKEN</code>:
      </p>
      <Code text={command()} wrap />
      <p>Or a gzipped tar of what is in the project's folder, from here:</p>
      <Upload
        verb="Submit"
        send={(file) =>
          api.submit(name.trim(), file, {
            cores: cores || null,
            memory: memory.trim() || null,
          })
        }
        onDone={done}
      >
        <label>
          Name
          <input
            class="input"
            required
            placeholder="shop"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Cores
          <input
            class="input"
            type="number"
            min="1"
            value={cores}
            onInput={(event) => setCores(event.currentTarget.value)}
          />
        </label>
        <label>
          Memory
          <input
            class="input"
            placeholder="as the project says"
            value={memory}
            onInput={(event) => setMemory(event.currentTarget.value)}
          />
        </label>
      </Upload>
      <p class="muted small">
        It is checked first: what is wrong is told with file and line, and nothing has changed.
      </p>
    </Dialog>
  );
}

async function contentOf(file: File): Promise<Blob> {
  try {
    return new Blob([await file.arrayBuffer()]);
  } catch {
    throw new Error("the file has changed since it was chosen: choose it again");
  }
}

/** A form for the file of a project; errors of the server are shown below it. */
export function Upload({
  verb,
  send,
  onDone,
  children,
}: {
  verb: string;
  send: (project: Blob) => Promise<unknown>;
  onDone: () => void;
  children?: preact.ComponentChildren;
}) {
  const [file, setFile] = useState<File | null>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Error | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!file) return;
    setBusy(true);
    setProblem(null);
    try {
      await send(await contentOf(file));
      onDone();
    } catch (error) {
      setProblem(error as Error);
    }
    setBusy(false);
  };
  return (
    <>
      <form class="form" onSubmit={submit}>
        {children}
        <label>
          Project, as .tar.gz
          <input
            class="input file"
            type="file"
            accept=".tgz,.gz,application/gzip"
            required
            onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
          />
        </label>
        <Button kind="primary" submit disabled={busy}>
          {busy ? "Checking …" : verb}
        </Button>
      </form>
      {problem && <Notice of={problem} />}
    </>
  );
}
