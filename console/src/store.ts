/** A value with subscribers, for live data. */

import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  set(next: T): void;
  update(change: (now: T) => T): void;
  watch(heard: (now: T) => void): () => void;
}

export function store<T>(first: T): Store<T> {
  let value = first;
  const watchers = new Set<(now: T) => void>();
  const set = (next: T): void => {
    if (Object.is(next, value)) return;
    value = next;
    for (const heard of [...watchers]) heard(value);
  };
  return {
    get: () => value,
    set,
    update: (change) => set(change(value)),
    watch(heard) {
      watchers.add(heard);
      return () => watchers.delete(heard);
    },
  };
}

/** The store's value; renders again whenever it changes. */
export function useStore<T>(from: Store<T>): T {
  const [value, setValue] = useState<T>(from.get);
  useEffect(() => {
    setValue(() => from.get());
    return from.watch((next) => setValue(() => next));
  }, [from]);
  return value;
}
