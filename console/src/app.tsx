/** The shell: navigation, the page of the current route, the keyboard, and the login page. */

import type { ComponentType } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, Problem, session } from "./api";
import { keepFor } from "./kept";
import { reader } from "./keys";
import { link } from "./link";
import * as live from "./live";
import { Login } from "./pages/login";
import { TopologyPage } from "./pages/topology";
import { go, place } from "./place";
import { loginCode, PAGES } from "./routes";
import { isProject, learn, pagesOf, paths } from "./server";
import { useStore } from "./store";
import { Away, isAway } from "./ui/away";
import { Nav } from "./ui/nav";
import { Help, Palette } from "./ui/palette";
import { Notice, toast, Waiting } from "./ui/parts";
import { me } from "./who";

type Loader = () => Promise<ComponentType>;

// Each screen is loaded when it is first visited; the landing page is in the main bundle.
const SCREENS: Record<string, Loader> = {
  views: () => import("./pages/views").then((m) => m.ViewsPage),
  alerts: () => import("./pages/alerts").then((m) => m.AlertsPage),
  query: () => import("./pages/query").then((m) => m.QueryPage),
  events: () => import("./pages/events").then((m) => m.EventsPage),
  lineage: () => import("./pages/lineage").then((m) => m.LineagePage),
  quality: () => import("./pages/quality").then((m) => m.QualityPage),
  runs: () => import("./pages/runs").then((m) => m.RunsPage),
  system: () => import("./pages/system").then((m) => m.SystemPage),
  jobs: () => import("./pages/jobs").then((m) => m.JobsPage),
  users: () => import("./pages/users").then((m) => m.UsersPage),
};

export function App() {
  const entry = useStore(session);
  useEffect(() => void enter(), []);
  const [known, setKnown] = useState(false);
  useEffect(() => {
    if (entry === "open") {
      const user = me.get()?.user;
      if (user !== undefined) keepFor(user);
      void learn().then(() => setKnown(true));
    }
    if (entry === "needed") leave();
  }, [entry]);
  if (entry === "needed") return <Login />;
  if (entry === "unknown" || !known) return null;
  return <Shell />;
}

/** Exchange the login code of the address, if there is one; then check the session. */
async function enter(): Promise<void> {
  const code = loginCode(location.hash);
  if (code) {
    history.replaceState(null, "", location.pathname);
    try {
      me.set(await api.login({ code }));
    } catch {
      // A code is valid once; otherwise the login page is shown.
    }
  }
  try {
    me.set(me.get() ?? (await api.ask("session")));
    session.set("open");
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) session.set("open");
  }
}

/** Clear all data of the user who has signed out. */
function leave(): void {
  me.set(null);
  live.stop();
}

function Shell() {
  const known = useStore(paths);
  const pages = useMemo(() => pagesOf(known), [known]);
  useEffect(() => {
    live.start(isProject(known));
  }, [known]);
  const asked = useStore(place).page;
  const page = pages.some((one) => one.page === asked) ? asked : (pages[0]?.page ?? asked);
  const [open, setOpen] = useState<"search" | "help" | null>(null);
  const message = useStore(toast);
  useKeyboard(setOpen);
  const title = PAGES.find((known) => known.page === page)?.title ?? "";
  const away = isAway(useStore(link));
  useEffect(() => {
    document.title = `${away ? "Not connected · " : ""}${title} · Headrace`;
  }, [title, away]);
  return (
    <>
      <div class={`shell${away ? " away" : ""}`}>
        {/* biome-ignore lint/a11y/useValidAnchor: a link that skips is a link; the fragment of the address names the screen, so the handler moves the focus. */}
        <a
          class="skip"
          href="#main"
          onClick={(event) => {
            event.preventDefault();
            document.getElementById("main")?.focus();
          }}
        >
          Skip to the content
        </a>
        <Nav
          pages={pages}
          page={page}
          onSearch={() => setOpen("search")}
          onHelp={() => setOpen("help")}
        />
        <main class="page" id="main" tabIndex={-1} key={page}>
          <Away />
          {page === "topology" ? <TopologyPage /> : <Screen page={page} key={page} />}
        </main>
      </div>
      {open === "search" && <Palette pages={pages} onClose={() => setOpen(null)} />}
      {open === "help" && <Help pages={pages} onClose={() => setOpen(null)} />}
      <div role="status" aria-live="polite">
        {message && <div class="toast">{message}</div>}
      </div>
    </>
  );
}

function Screen({ page }: { page: string }) {
  const [found, setFound] = useState<{ Page: ComponentType } | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  useEffect(() => {
    const load = SCREENS[page];
    if (load)
      load().then(
        (Page) => setFound({ Page }),
        (error: Error) => setProblem(error),
      );
  }, [page]);
  if (problem)
    return (
      <div class="content">
        <Notice of={problem} />
      </div>
    );
  return found ? (
    <found.Page />
  ) : (
    <div class="content">
      <Waiting />
    </div>
  );
}

function useKeyboard(ask: (what: "search" | "help") => void): void {
  useEffect(() => {
    const read = reader();
    const press = (event: KeyboardEvent) => {
      if (document.querySelector("dialog[open]")) return;
      const target = event.composedPath()[0] as HTMLElement;
      const typing =
        target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName ?? "");
      const modified = event.ctrlKey || event.metaKey || event.altKey;
      const command = read({ key: event.key, at: event.timeStamp, typing, modified });
      if (!command) return;
      event.preventDefault();
      if (typeof command === "string") ask(command);
      else go(command.go);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
