/** Every view as a small live chart. */

import { plural } from "../format";
import { link } from "../routes";
import { AnswerChart } from "../ui/chart";
import { Badge, Dot } from "../ui/parts";
import { useView, useViewTone } from "../ui/view";
import type { ViewStatus } from "../wire";

export function ViewCards({ views }: { views: ViewStatus[] }) {
  const kept = views.filter((view) => view.name !== "alerts");
  if (!kept.length) return null;
  return (
    <section class="stack" aria-label="Views">
      <div class="cards">
        {kept.map((view) => (
          <ViewCard key={view.name} view={view} />
        ))}
      </div>
    </section>
  );
}

function ViewCard({ view }: { view: ViewStatus }) {
  const { answer, problem } = useView(view.name, 60);
  const toneOf = useViewTone();
  const estimated = answer && Object.values(answer.columns).some((column) => !column.exact);
  return (
    <section class="panel">
      <div class="head">
        <Dot tone={toneOf(view)} />
        <h2>
          <a href={link("views", view.name)}>{view.name}</a>
        </h2>
        <span class="actions">
          {view.state === "building" && <Badge tone="warn">building</Badge>}
          {estimated && (
            <Badge title="some values are estimates until the next generation">±</Badge>
          )}
          {(view.rows > 0 || answer) && (
            <span class="muted num">{plural(view.rows || (answer?.total ?? 0), "row")}</span>
          )}
        </span>
      </div>
      <div class="inside">
        {answer ? (
          <AnswerChart answer={answer} height={170} label={view.name} />
        ) : (
          <p class="muted">{problem ? problem.message : "…"}</p>
        )}
      </div>
    </section>
  );
}
