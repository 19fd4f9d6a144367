/** A view's answer, kept fresh while it is looked at. */

import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { moved } from "../live";
import { since, windowColumn } from "../plot";
import type { Answer } from "../wire";

const ROWS_MAX = 4000;
const AGAIN_MS = 5000;

/** The newest windows of a view, or all of its rows if it has none. What was answered before says
 *  from where on to ask, so that only the first time takes two questions. */
export async function readView(
  name: string,
  windows: number,
  before: Answer | null,
): Promise<Answer> {
  const known = before?.rows.length ? before : await api.view(name, { limit: 1 });
  for (let wanted = windows; ; wanted = Math.floor(wanted / 2)) {
    const from = windowColumn(known.columns) ? since(known, wanted) : null;
    const answer = await api.view(name, { limit: ROWS_MAX, from: from ?? undefined });
    if (!answer.rows.length && from) return api.view(name, { limit: ROWS_MAX });
    // More rows than these would be cut anywhere, so fewer windows are asked for.
    if (answer.rows.length < ROWS_MAX || !from || wanted < 2) return answer;
  }
}

export function useView(
  name: string,
  windows: number,
): { answer: Answer | null; problem: Error | null } {
  const [state, setState] = useState<{ answer: Answer | null; problem: Error | null }>({
    answer: null,
    problem: null,
  });
  useEffect(() => {
    let ended = false;
    let busy = false;
    let stale = false;
    let last: Answer | null = null;
    let again = 0;
    setState({ answer: null, problem: null });
    // One question at a time: news that come meanwhile are one question more.
    const read = async () => {
      stale = true;
      if (busy) return;
      busy = true;
      while (stale && !ended) {
        stale = false;
        try {
          const answer = await readView(name, windows, last);
          last = answer;
          if (!ended) setState({ answer, problem: null });
        } catch (error) {
          if (ended) return;
          setState((now) => ({ ...now, problem: error as Error }));
          // One at a time, however often it fails: streams that move ask too.
          clearTimeout(again);
          again = window.setTimeout(read, AGAIN_MS);
        }
      }
      busy = false;
    };
    // Nobody looks at a page that is hidden; it is read when it is looked at again.
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
  }, [name, windows]);
  return state;
}
