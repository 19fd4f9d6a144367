/** All views, or one of them. */

import { count } from "../format";
import { status } from "../live";
import { place } from "../place";
import { link } from "../routes";
import { useStore } from "../store";
import { PageHead } from "../ui/page";
import { Badge, Dot, Empty, Panel, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import { useViewTone } from "../ui/view";
import type { ViewStatus } from "../wire";
import { ViewPage } from "./view";

export function ViewsPage() {
  const { name } = useStore(place);
  return name ? <ViewPage name={name} key={name} /> : <ViewList />;
}

function ViewList() {
  const project = useStore(status);
  return (
    <>
      <PageHead
        title="Views"
        about="each is one definition, kept by batch and speed and merged when read"
      />
      <div class="content">
        <Panel flush>
          {!project ? (
            <div class="empty">
              <Waiting />
            </div>
          ) : project.views.length ? (
            <List views={project.views} />
          ) : (
            <NoViews />
          )}
        </Panel>
      </div>
    </>
  );
}

function List({ views }: { views: ViewStatus[] }) {
  const toneOf = useViewTone();
  return (
    <Table
      label="Views"
      of={views}
      keyOf={(view) => view.name}
      columns={[
        {
          name: "View",
          show: (view) => (
            <span class="row">
              <Dot tone={toneOf(view)} />
              <a href={link("views", view.name)}>{view.name}</a>
            </span>
          ),
        },
        { name: "Kind", show: (view) => <span class="muted">{view.kind}</span> },
        { name: "State", show: (view) => view.state },
        {
          name: "Stream",
          show: (view) =>
            view.stream ? (
              <a href={link("events", view.stream)}>{view.stream}</a>
            ) : (
              <span class="muted">other views</span>
            ),
        },
        {
          name: "Rows",
          right: true,
          show: (view) => (view.kind === "read" ? "–" : count(view.rows)),
        },
        { name: "Generation", right: true, show: (view) => view.generation || "–" },
        {
          name: "Audit",
          show: (view) =>
            view.differences === null ? (
              <span class="muted">–</span>
            ) : view.differences ? (
              <Badge tone="bad">{count(view.differences)} differences</Badge>
            ) : (
              <Badge tone="ok">agrees</Badge>
            ),
        },
      ]}
    />
  );
}

const EXAMPLE = `CREATE VIEW by_hour AS
SELECT window(ts, '1 hour') AS hour, count(*) AS events
FROM clicks GROUP BY window(ts, '1 hour');`;

function NoViews() {
  return (
    <Empty title="No view is defined" command={EXAMPLE}>
      <p>Put a definition into any .sql file of the project and start it again.</p>
    </Empty>
  );
}
