/** The keyboard: `g` and a letter goes to a page, `/` searches, `?` helps. tests/keys.test.ts. */

import { PAGES } from "./routes";

export type Command = { go: string } | "search" | "help" | null;

export interface Press {
  key: string;
  at: number;
  typing: boolean; // in a field
  modified: boolean; // with Ctrl, Alt or Meta
}

const PAUSE_MS = 1200;

/** Handles one key at a time; `g` waits shortly for the next key. */
export function reader(): (press: Press) => Command {
  let waitingSince: number | null = null;
  return ({ key, at, typing, modified }) => {
    if (typing || modified) {
      waitingSince = null;
      return null;
    }
    const after = waitingSince !== null && at - waitingSince < PAUSE_MS;
    waitingSince = null;
    if (after) {
      const page = PAGES.find((known) => known.key === key);
      return page ? { go: page.page } : null;
    }
    if (key === "g") waitingSince = at;
    if (key === "/") return "search";
    return key === "?" ? "help" : null;
  };
}
