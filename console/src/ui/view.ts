/** A view's answer, kept fresh while it is looked at. */

import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { moved } from "../live";
import { since, windowColumn } from "../plot";
import type { Answer } from "../wire";

const ROWS_MAX = 4000;

/** The newest windows of a view, or all of its rows if it has none. What was answered before says
 *  from where on to ask, so that only the first time takes two questions. */
export async function readView(name: string, windows: number, before: Answer | null): Promise<Answer> {
  const known = before?.rows.length ? before : await api.view(name, { limit: 1 });
  const from = windowColumn(known.columns) ? since(known, windows) : null;
  const answer = await api.view(name, { limit: ROWS_MAX, from: from ?? undefined });
  return answer.rows.length || !from ? answer : api.view(name, { limit: ROWS_MAX });
}

export function useView(name: string, windows: number): { answer: Answer | null; problem: Error | null } {
  const [state, setState] = useState<{ answer: Answer | null; problem: Error | null }>({ answer: null, problem: null });
  useEffect(() => {
    let ended = false;
    let busy = false;
    let stale = false;
    let last: Answer | null = null;
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
          if (!ended) setState((now) => ({ ...now, problem: error as Error }));
        }
      }
      busy = false;
    };
    void read();
    const stop = moved.watch(() => void read());
    return () => {
      ended = true;
      stop();
    };
  }, [name, windows]);
  return state;
}
