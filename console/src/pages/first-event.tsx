/** An empty page with a command that sends the first event. */

import { api } from "../api";
import { BEARER, base } from "../snippets";
import { useAsked } from "../ui/hooks";
import { Empty, Panel } from "../ui/parts";
import type { CatalogStream } from "../wire";

export function command(stream: CatalogStream, origin: string): string {
  const body = (stream.sample ?? "").replaceAll("'", "'\\''");
  return `curl -X POST ${origin}/v1/streams/${stream.name}/events \\\n  ${BEARER} \\\n  -H 'Content-Type: ${stream.format === "csv" ? "application/octet-stream" : "application/json"}' \\\n  --data-binary '${body}'`;
}

export function FirstEvent({ stream, title }: { stream?: string; title?: string }) {
  const { value } = useAsked(() => api.ask("catalog"), []);
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
        command={command(chosen, base(location.href))}
      >
        <p>
          It is answered when the event is on disk; a second later it counts in every view of the
          stream.
        </p>
      </Empty>
    </Panel>
  );
}
