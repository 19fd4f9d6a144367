/** The state and the commands of a job of a server. Pure: tests/jobs.test.ts. */

import { plural } from "./format";
import type { Health } from "./graph";
import { NOT_CONNECTED } from "./link";
import type { JobStatus } from "./wire";

export type Verb = "restart" | "pause" | "resume" | "cancel";

interface Command {
  verb: Verb;
  name: string;
  operation: string; // required on the job
  desired: JobStatus["desired"][]; // the states in which it is available
  means: string;
}

export const COMMANDS: readonly Command[] = [
  {
    verb: "resume",
    name: "Resume",
    operation: "restart",
    desired: ["paused"],
    means:
      "Its process is started again, if its cores and memory are still free, and resumes where it stopped.",
  },
  {
    verb: "restart",
    name: "Restart",
    operation: "restart",
    desired: ["running"],
    means:
      "Its process is restarted, and its count of deaths is reset. Until it is ready, reads are answered from its store, and events are refused and can be sent again.",
  },
  {
    verb: "pause",
    name: "Pause",
    operation: "restart",
    desired: ["running"],
    means:
      "Its process is stopped until it is resumed, and its cores and memory are free for others. Reads are answered from its store; events are refused.",
  },
  {
    verb: "cancel",
    name: "Cancel",
    operation: "cancel",
    desired: ["running", "paused"],
    means:
      "It is stopped permanently and its names are free. Its state and versions are kept: if submitted again under this name, it starts with that state.",
  },
];

export const commandsFor = (job: Pick<JobStatus, "desired">): Command[] =>
  COMMANDS.filter((one) => one.desired.includes(job.desired));

/** The states of jobs and of projects. */
const TONES: Record<string, Health> = {
  running: "ok",
  degraded: "bad",
  starting: "warn",
  restarting: "warn",
  stopping: "warn",
  silent: "bad",
  failed: "bad",
  paused: "idle",
  cancelled: "idle",
  [NOT_CONNECTED]: "bad",
};
export const stateTone = (state: string): Health => TONES[state] ?? "idle";

type State = Pick<JobStatus, "state" | "problems">;

/** A job that is running may be slow or behind. */
export const jobTone = ({ state, problems }: State): Health =>
  state === "running" && problems ? "warn" : stateTone(state);

/** What to say of all jobs: "all well" only if each is running without a problem, or cancelled. */
export function summary(jobs: readonly State[]): { tone: Health; text: string }[] {
  const failing = jobs.filter((job) => jobTone(job) === "bad");
  const warned = jobs.filter((job) => job.state === "running" && job.problems);
  const down = jobs.filter(
    (job) => !["running", "cancelled"].includes(job.state) && !failing.includes(job),
  );
  const found: { tone: Health; of: readonly State[]; text: string }[] = [
    { tone: "bad", of: failing, text: "failing" },
    { tone: "warn", of: down, text: "not running" },
    { tone: "warn", of: warned, text: "with warnings" },
  ];
  const said = found
    .filter(({ of }) => of.length)
    .map(({ tone, of, text }) => ({ tone, text: `${of.length} ${text}` }));
  return said.length || !jobs.length ? said : [{ tone: "ok", text: "all well" }];
}

/** The problem of a job, its cause, and what to do; null if there is none. */
export function trouble(
  job: Pick<JobStatus, "name" | "state" | "reason" | "version" | "problems">,
): { says: string; cause: string; todo: string[] } | null {
  const { name, state, reason, version, problems } = job;
  if (state === "degraded") {
    return {
      says: `${name} is degraded${problems ? `: ${plural(problems, "problem")}` : ""}`,
      cause: reason,
      todo: ["Its own console shows where. What fails is retried."],
    };
  }
  if (state === "failed") {
    return {
      says: `${name} has failed`,
      cause: reason,
      todo: [
        "Read the end of its log, below: the last lines have the error.",
        `Fix the project and apply it: headrace apply DIR ${name}`,
        ...(version > 1 ? ["Or roll back to an earlier version, under Versions."] : []),
        "If the cause was outside of it, such as a full disk, restart it.",
      ],
    };
  }
  if (state === "restarting") {
    return {
      says: `${name} died and is being restarted`,
      cause: reason,
      todo: ["Nothing yet. If it keeps dying, it fails and is not restarted."],
    };
  }
  if (state === "silent") {
    return {
      says: `${name} has no heartbeat`,
      cause: reason,
      todo: [
        "Nothing yet. Without a heartbeat it is killed and restarted; reads are answered from its store.",
      ],
    };
  }
  return null;
}
