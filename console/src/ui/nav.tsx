/** The navigation, with the state of the project. */

import { useEffect, useState } from "preact/hooks";
import { openBySeverity, severityTone } from "../alerts";
import { api, session } from "../api";
import { duration, short } from "../format";
import { stateTone } from "../jobs";
import { forget } from "../kept";
import { lasting, link as linked, NOT_CONNECTED } from "../link";
import { now, status } from "../live";
import { go } from "../place";
import { HOME, link, type Page, serverAbove } from "../routes";
import { isProject, paths } from "../server";
import { useStore } from "../store";
import { me } from "../who";
import { isAway } from "./away";
import { Icon, Mark } from "./icons";
import { Badge, Button, Dot, say } from "./parts";
import { theme, toggleTheme } from "./theme";

const GROUPS = ["Watch", "Ask", "Trust", "Run"] as const;

export function Nav({
  pages,
  page,
  onSearch,
  onHelp,
}: {
  pages: readonly Page[];
  page: string;
  onSearch: () => void;
  onHelp: () => void;
}) {
  const project = useStore(status);
  const away = isAway(useStore(linked));
  const state = away ? NOT_CONNECTED : (project?.state ?? "");
  const alone = isProject(useStore(paths));
  const above = serverAbove(location.pathname);
  const look = useStore(theme);
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [page]);
  const alerts = openBySeverity(project?.rules ?? []);
  return (
    <nav class={`nav${open ? " open" : ""}`} aria-label="Console">
      <a class="brand" href={link(pages[0]?.page ?? "topology")}>
        <Mark />
        <span class="grow">
          <strong class="ellipsis">{project?.name ?? "Headrace"}</strong>
          <span class="state" title={project?.reason}>
            {project || away ? (
              <>
                <Dot tone={stateTone(state)} />
                {state}
              </>
            ) : (
              !alone && "server of jobs"
            )}
          </span>
        </span>
      </a>
      <Button kind="quiet menu-button" icon="menu" label="Menu" onPress={() => setOpen(!open)} />
      <button type="button" class="jump" onClick={onSearch}>
        <Icon name="search" />
        <span class="grow">Jump to …</span>
        <kbd class="kbd">/</kbd>
      </button>
      <div class="links">
        {above && (
          <a class="item" href={above}>
            <Icon name="back" />
            All jobs
          </a>
        )}
        {GROUPS.map((group) => {
          const own = pages.filter((one) => one.group === group);
          return (
            own.length > 0 && (
              <div key={group}>
                <p class="group">{group}</p>
                {own.map((one) => (
                  <a
                    class="item"
                    key={one.page}
                    href={link(one.page)}
                    aria-current={one.page === page ? "page" : undefined}
                    title={`g ${one.key}`}
                  >
                    <Icon name={one.icon} />
                    {one.title}
                    {one.page === "alerts" && alerts[0] && (
                      <Badge tone={severityTone(alerts[0][0])}>
                        {short(alerts.reduce((sum, [, open]) => sum + open, 0))}
                      </Badge>
                    )}
                  </a>
                ))}
              </div>
            )
          );
        })}
        <Account />
      </div>
      <div class="foot">
        <LinkState />
        <span class="grow" />
        <Button
          kind="quiet tiny"
          icon={look === "dark" ? "sun" : "moon"}
          label={`Switch to ${look === "dark" ? "light" : "dark"}`}
          onPress={toggleTheme}
        />
        <Button kind="quiet tiny" icon="help" label="Keys and help" onPress={onHelp} />
      </div>
    </nav>
  );
}

/** The signed-in user, and sign-out. */
function Account() {
  const who = useStore(me);
  const leave = async () => {
    try {
      await api.logout();
      forget();
      go(HOME.page);
      session.set("needed");
    } catch (error) {
      say((error as Error).message);
    }
  };
  return (
    who && (
      <div class="account">
        <Icon name="user" />
        <span class="ellipsis grow" title={`signed in as ${who.user}`}>
          <span class="hidden-visually">signed in as </span>
          {who.user}
        </span>
        <Button kind="quiet tiny" icon="leave" onPress={() => void leave()}>
          Sign out
        </Button>
      </div>
    )
  );
}

const WORDS = { connecting: "connecting", live: "live", asking: "every 2 s", lost: NOT_CONNECTED };

function LinkState() {
  const of = useStore(linked);
  const { state } = of;
  useStore(now); // updates the duration each second
  const tone = state === "lost" ? "bad" : state === "connecting" ? "idle" : "ok";
  const long = state === "lost" ? ` for ${duration(lasting(of))}` : "";
  return (
    <span class="link" role="status">
      <Dot tone={tone} beat={tone === "ok"} />
      {WORDS[state]}
      {long}
    </span>
  );
}
