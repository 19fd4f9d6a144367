/** The banner above every screen while the server is not connected. */

import { serverNow } from "../clock";
import { clock, duration } from "../format";
import { connected, type Link, lasting, link } from "../link";
import { now, status } from "../live";
import { useStore } from "../store";
import { Dot } from "./parts";

/** False before the first response: nothing on the screen is outdated yet. */
export const isAway = (of: Link): boolean =>
  !connected(of) && (of.state === "lost" || status.get() !== null);

export function Away() {
  const of = useStore(link);
  useStore(now); // updates the duration each second
  if (!isAway(of)) return null;
  return (
    <div class="away-banner" role="alert">
      <Dot tone="bad" />
      <p>
        <strong>Not connected for {duration(lasting(of))}</strong>
        {of.reason && `: ${of.reason}`}. What is shown was so at {clock(serverNow(of.since))} UTC.
      </p>
    </div>
  );
}
