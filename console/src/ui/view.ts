/** The answer of a view, reloaded while its page is visible, and the color of its health. */

import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { moved, status, topology } from "../live";
import { readView } from "../reading";
import { useStore } from "../store";
import type { Answer, ViewStatus } from "../wire";
import type { Tone } from "./parts";

const AGAIN_MS = 5000;
/** A slow view is read for at most a fifth of the time. */
const REST = 4;

interface Viewed {
  answer: Answer | null;
  at: number; // when the answer arrived, by performance.now()
  problem: Error | null;
}

export function useView(name: string, windows: number, measure: string | null = null): Viewed {
  const [state, setState] = useState<Viewed>({ answer: null, at: 0, problem: null });
  useEffect(() => {
    let ended = false;
    let busy = false;
    let stale = false;
    let last: Answer | null = null;
    let again = 0;
    // One request at a time: changes meanwhile cause one more request.
    const read = async () => {
      stale = true;
      if (busy) return;
      busy = true;
      while (stale && !ended) {
        stale = false;
        try {
          const begun = performance.now();
          const answer = await readView((asked) => api.view(name, asked), windows, measure, last);
          last = answer;
          if (!ended) setState({ answer, at: performance.now(), problem: null });
          await rest(REST * (performance.now() - begun));
        } catch (error) {
          if (ended) return;
          setState((now) => ({ ...now, problem: error as Error }));
          // One timer at a time, because changes of streams request it too.
          clearTimeout(again);
          again = window.setTimeout(read, AGAIN_MS);
        }
      }
      busy = false;
    };
    // A hidden page is not reloaded; it is when it becomes visible again.
    const seen = () => void (document.hidden || read());
    void read();
    const stop = moved.watch(seen);
    document.addEventListener("visibilitychange", seen);
    return () => {
      ended = true;
      clearTimeout(again);
      document.removeEventListener("visibilitychange", seen);
      stop();
    };
  }, [name, windows, measure]);
  return state;
}

const rest = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** A view is as well as its node and its project: it may be live while its stream fails or the
 *  project is stopped. An unknown state is not shown as good. */
export function useViewTone(): (view: ViewStatus) => Tone {
  const seen = useStore(topology);
  const project = useStore(status)?.state ?? "";
  const healths = new Map(seen?.nodes.map((node) => [node.id, node.health]));
  return ({ name, state }) => {
    const health = healths.get(`view:${name}`);
    if (health === "bad" || health === "warn") return health;
    if (!["starting", "running", "degraded"].includes(project)) return "idle";
    return state === "building" ? "warn" : state === "live" || state === "read" ? "ok" : "idle";
  };
}
