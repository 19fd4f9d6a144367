/** The text in the editor: what a link says, until it is edited; then what was typed, also after the
 *  page was loaded again. tests/draft.test.ts checks it.
 */

export interface Draft {
  text: string;
  link: string | undefined; // what the address says, while it says what the editor has
}

/** The address says this now. A link is taken at any time, once. */
export function linked(now: Draft, link: string | undefined): Draft {
  if (link === now.link) return now;
  return link === undefined ? { ...now, link } : { text: link, link };
}

/** Somebody has typed. What the address said is then not what the editor has, and is dropped. */
export function typed(now: Draft, text: string): Draft {
  return { text, link: text === now.link ? now.link : undefined };
}
