/** Rebuilding a view: asks for confirmation, then shows progress and remaining time. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { now } from "../live";
import { price, progress, result, underWay } from "../rebuild";
import { store, useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { Button, Confirm, Notice, say } from "../ui/parts";
import { allows, me } from "../who";

/** The rebuilds that this window requested, by view: busy, or the error. Kept when the page changes. */
const asked = store<Record<string, "busy" | Error>>({});

function rebuild(name: string): void {
  const note = (now: "busy" | Error | null) =>
    asked.update(({ [name]: _, ...others }) => (now ? { ...others, [name]: now } : others));
  note("busy");
  api.rebuild(name).then(
    (done) => {
      note(null);
      say(result(done));
    },
    (error: Error) => note(error),
  );
}

export function RebuildButton({ name, kind = "tiny" }: { name: string; kind?: string }) {
  const who = useStore(me);
  const busy = useStore(asked)[name] === "busy";
  const [asking, setAsking] = useState(false);
  if (!allows(who, "rebuild", `view:${name}`)) return null;
  return (
    <>
      <Button kind={kind} icon="refresh" disabled={busy} onPress={() => setAsking(true)}>
        {busy ? "Rebuilding …" : "Rebuild"}
      </Button>
      {asking && <Asking name={name} onClose={() => setAsking(false)} />}
    </>
  );
}

function Asking({ name, onClose }: { name: string; onClose: () => void }) {
  const about = useAsked(() => api.ask("about_view", { view: name }), [name]);
  return (
    <Confirm
      title={`Rebuild ${name}?`}
      verb="Rebuild"
      onClose={onClose}
      onDo={async () => rebuild(name)}
    >
      <p>
        It is computed from its whole history and swapped in; what is served now stays until then.{" "}
        {price(about.value?.rebuild)}
      </p>
    </Confirm>
  );
}

/** Shown while a rebuild of the view waits or runs, whoever requested it. */
export function RebuildProgress({ name }: { name: string }) {
  const mine = useStore(asked)[name];
  const about = useAsked(() => api.ask("about_view", { view: name }), [name, mine], 5000);
  if (mine instanceof Error) return <Notice of={mine} />;
  return mine === "busy" || underWay(about.value?.rebuild) ? <Running name={name} /> : null;
}

function Running({ name }: { name: string }) {
  const of = useAsked(() => api.ask("about_view", { view: name }), [name], 1000).value?.rebuild;
  const time = useStore(now);
  if (!underWay(of)) return null;
  const { share, text } = progress(of, time);
  return (
    <div class="notice" role="status">
      <div class="stack tight grow">
        <p>
          <strong>{name} is being rebuilt.</strong> {text}
        </p>
        <div
          class={`progress${share === null ? " unknown" : ""}`}
          role="progressbar"
          aria-label={`Rebuild of ${name}`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={share === null ? undefined : Math.round(share * 100)}
        >
          <i style={{ width: `${share === null ? 100 : Math.max(2, share * 100)}%` }} />
        </div>
      </div>
    </div>
  );
}
