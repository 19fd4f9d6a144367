/** The text in the editor: that of a link until it is edited; then the typed text, also after a
 *  reload of the page. tests/draft.test.ts checks it.
 */

export interface Draft {
  text: string;
  link: string | undefined; // the text of the address, while it equals that of the editor
}

/** The address has changed. Each link is applied once. */
export function linked(now: Draft, link: string | undefined): Draft {
  if (link === now.link) return now;
  return link === undefined ? { ...now, link } : { text: link, link };
}

/** The text was edited, so the text of the address is dropped. */
export function typed(now: Draft, text: string): Draft {
  return { text, link: text === now.link ? now.link : undefined };
}
