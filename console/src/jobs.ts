/** The state and the commands of a job of a server. Pure: tests/jobs.test.ts. */

import type { Health } from "./graph";
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

const TONES: Record<JobStatus["state"], Health> = {
  running: "ok",
  starting: "warn",
  restarting: "warn",
  stopping: "warn",
  silent: "bad",
  failed: "bad",
  paused: "idle",
  cancelled: "idle",
};
export const stateTone = (state: JobStatus["state"]): Health => TONES[state];

/** The problem of a job, its cause, and what to do; null if there is none. */
export function trouble(
  job: Pick<JobStatus, "name" | "state" | "reason" | "version">,
): { says: string; cause: string; todo: string[] } | null {
  const { name, state, reason, version } = job;
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
