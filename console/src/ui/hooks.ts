/** Hooks for requests of a component. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { keep, kept } from "../kept";

export interface Asked<T> {
  value: T | null;
  problem: Error | null;
  loading: boolean;
  again: () => void;
}

/** The result of a request, sent again when `deps` change, and at an interval if there is one.
 *  The last result stays while the next one is fetched; outdated responses are dropped. */
export function useAsked<T>(
  ask: () => Promise<T>,
  deps: readonly unknown[],
  everyMs = 0,
): Asked<T> {
  const [state, setState] = useState<{ value: T | null; problem: Error | null }>({
    value: null,
    problem: null,
  });
  const [loading, setLoading] = useState(true);
  const turn = useRef(0);
  const run = useCallback(async () => {
    const mine = ++turn.current;
    setLoading(true);
    try {
      const value = await ask();
      if (mine === turn.current) setState({ value, problem: null });
    } catch (error) {
      if (mine === turn.current) setState((now) => ({ value: now.value, problem: error as Error }));
    }
    if (mine === turn.current) setLoading(false);
  }, deps);
  useEffect(() => {
    setState({ value: null, problem: null });
    void run();
    return () => {
      turn.current += 1;
    };
  }, [run]);
  // A separate effect, so that the result stays when the interval is removed.
  useEffect(() => {
    if (!everyMs) return;
    let timer = 0;
    let ended = false;
    const loop = async () => {
      if (!document.hidden) await run();
      if (!ended) timer = window.setTimeout(loop, everyMs);
    };
    timer = window.setTimeout(loop, everyMs);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [run, everyMs]);
  return { ...state, loading, again: () => void run() };
}

/** A value that the browser stores for its user. */
export function useKept<T>(name: string, first: T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => kept(name, first));
  const set = useCallback(
    (next: T) => {
      setValue(() => next);
      keep(name, next);
    },
    [name],
  );
  return [value, set];
}
