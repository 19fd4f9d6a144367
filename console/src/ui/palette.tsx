/** The command palette, and the list of keyboard shortcuts. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { status, topology } from "../live";
import { link, type Page } from "../routes";
import { Icon } from "./icons";
import { Dialog } from "./parts";

interface Target {
  name: string;
  kind: string;
  icon: string;
  href: string;
}

function targets(pages: readonly Page[]): Target[] {
  const project = status.get();
  const nodes = topology.get()?.nodes ?? [];
  const derived = nodes.filter(
    (node) => node.kind === "table" || node.kind === "sink" || node.kind === "stream",
  );
  return [
    ...pages.map((page) => ({
      name: page.title,
      kind: "page",
      icon: page.icon,
      href: link(page.page),
    })),
    ...(project?.views ?? []).map(({ name }) => ({
      name,
      kind: "view",
      icon: "chart",
      href: link("views", name),
    })),
    ...(project?.streams ?? []).map(({ name }) => ({
      name,
      kind: "stream",
      icon: "list",
      href: link("events", name),
    })),
    ...(project?.rules ?? []).map(({ name }) => ({
      name,
      kind: "rule",
      icon: "bell",
      href: link("alerts", null, { rule: name }),
    })),
    ...derived.map((node) => ({
      name: node.name,
      kind: node.kind,
      icon: "graph",
      href: link("topology", null, { node: node.id }),
    })),
  ];
}

export function Palette({ pages, onClose }: { pages: readonly Page[]; onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const all = useMemo(() => targets(pages), []);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all
    .filter((one) => words.every((word) => `${one.name} ${one.kind}`.toLowerCase().includes(word)))
    .slice(0, 40);
  useEffect(() => ref.current?.showModal(), []);
  const choose = (target: Target | undefined) => {
    if (target) location.hash = target.href;
    onClose();
  };
  const press = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(found.length - 1, at + step)));
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(found[at]);
    }
  };
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label="Jump to"
      onClose={onClose}
      onMouseDown={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <input
        role="combobox"
        aria-label="Jump to a page, view, stream or rule"
        aria-expanded="true"
        aria-controls="targets"
        aria-activedescendant={found[at] ? `target-${at}` : undefined}
        placeholder="Page, view, stream, rule …"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <div id="targets" role="listbox" aria-label="Found">
        {found.map((one, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the focus stays in the input, which has the keys of the list.
          <div
            id={`target-${index}`}
            key={one.href + one.kind}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onMouseMove={() => setAt(index)}
            onClick={() => choose(one)}
          >
            <Icon name={one.icon} />
            {one.name}
            <span class="muted">{one.kind}</span>
          </div>
        ))}
      </div>
      {!found.length && (
        <p class="none muted" role="status">
          Nothing has this name
        </p>
      )}
    </dialog>
  );
}

export function Help({ pages, onClose }: { pages: readonly Page[]; onClose: () => void }) {
  const keys: [string, string][] = [
    ["/", "search"],
    ["?", "this list"],
    ["Esc", "close"],
    ...pages.map((page): [string, string] => [`g ${page.key}`, page.title]),
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="facts">
        {keys.map(([key, what]) => [
          <dt key={key}>
            {key.split(" ").map((part) => (
              <kbd class="kbd" key={part}>
                {part}
              </kbd>
            ))}
          </dt>,
          <dd key={what}>{what}</dd>,
        ])}
      </dl>
      <p class="muted small">
        The console shows what the HTTP API says: <a href="openapi.json">its description</a>.
      </p>
    </Dialog>
  );
}
