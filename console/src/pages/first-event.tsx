/** What an empty page teaches: a command that sends the first event. */

import { api } from "../api";
import { BEARER, base } from "../snippets";
import { useAsked } from "../ui/hooks";
import { Empty, Panel } from "../ui/parts";
import type { CatalogStream } from "../wire";

const SAMPLES: [RegExp, unknown][] = [
  [/INT/, 42],
  [/DOUBLE|FLOAT|DECIMAL/, 9.5],
  [/BOOLEAN/, true],
  [/ARRAY/, []],
];

/** An event that a stream takes, made of its columns. */
export function sample(stream: CatalogStream, time: string): Record<string, unknown> {
  const event: Record<string, unknown> = {};
  if (stream.id && !stream.columns.some((column) => column.name === stream.id))
    event[stream.id] = "first";
  for (const { name, type, generated } of stream.columns) {
    if (generated !== null) continue; // it is computed, and in no event
    const known = SAMPLES.find(([pattern]) => pattern.test(type ?? ""));
    event[name] = /TIMESTAMP|DATE/.test(type ?? "") ? time : known ? known[1] : "ada";
  }
  return event;
}

export function command(stream: CatalogStream, origin: string, time: string): string {
  const body = JSON.stringify(sample(stream, time)).replaceAll("'", "'\\''");
  return `curl -X POST ${origin}/v1/streams/${stream.name}/events \\\n  ${BEARER} \\\n  -H 'Content-Type: application/json' \\\n  --data-binary '${body}'`;
}

export function FirstEvent({ stream, title }: { stream?: string; title?: string }) {
  const { value } = useAsked(api.catalog, []);
  const declared = value?.streams.filter((one) => one.kind === "declared") ?? [];
  const chosen =
    declared.find((one) => one.name === stream) ??
    declared.find((one) => one.source === "http") ??
    declared[0];
  if (!chosen) return null;
  return (
    <Panel>
      <Empty
        title={title ?? `Send the first event to ${chosen.name}`}
        command={command(chosen, base(location.href), `${new Date().toISOString().slice(0, 19)}Z`)}
      >
        <p>
          It is answered when the event is on disk; a second later it counts in every view of the
          stream.
        </p>
      </Empty>
    </Panel>
  );
}
