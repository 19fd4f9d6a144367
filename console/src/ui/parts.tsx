/** The basic components of all screens. Text is never rendered as HTML. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api";
import { ago, moment } from "../format";
import type { Health } from "../graph";
import { now } from "../live";
import { store, useStore } from "../store";
import { Icon } from "./icons";

export type Tone = Health | "accent";
type Children = { children?: ComponentChildren };

export function Dot({ tone, beat }: { tone: Tone; beat?: boolean }) {
  return (
    <span
      class={`dot ${tone}${beat ? " beat" : ""}${tone === "idle" ? " hollow" : ""}`}
      aria-hidden="true"
    />
  );
}

export function Badge({
  tone = "idle",
  onPress,
  title,
  children,
}: Children & {
  tone?: Tone;
  onPress?: () => void;
  title?: string;
}) {
  if (!onPress)
    return (
      <span class={`badge ${tone}`} title={title}>
        {children}
      </span>
    );
  return (
    <button type="button" class={`badge ${tone}`} title={title} onClick={onPress}>
      {children}
    </button>
  );
}

export function Button({
  children,
  kind = "",
  icon,
  label,
  onPress,
  disabled,
  submit,
}: Children & {
  kind?: string;
  icon?: string;
  label?: string;
  onPress?: () => void;
  disabled?: boolean;
  submit?: boolean;
}) {
  const square = icon && !children ? " square" : "";
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind}${square}`}
      aria-label={label}
      title={label}
      onClick={onPress}
      disabled={disabled}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function Panel({
  title,
  note,
  actions,
  flush,
  children,
}: Children & {
  title?: ComponentChildren;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  flush?: boolean;
}) {
  return (
    <section class="panel">
      {(title || actions) && (
        <div class="head">
          {title && <h2>{title}</h2>}
          {note && <span class="muted">{note}</span>}
          {actions && <div class="actions">{actions}</div>}
        </div>
      )}
      <div class={flush ? "flush" : "inside"}>{children}</div>
    </section>
  );
}

export function Stats({ children }: Children) {
  return <dl class="stats">{children}</dl>;
}

export function Stat({
  name,
  value,
  tone,
  note,
}: {
  name: string;
  value: ComponentChildren;
  tone?: Tone;
  note?: ComponentChildren;
}) {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd class={tone}>
        {value}
        {note && <small>{note}</small>}
      </dd>
    </div>
  );
}

export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => [<dt key={`${name}:`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}

/** A relative time, with the timestamp as its tooltip. */
export function Ago({ at }: { at: string | number | null | undefined }) {
  const time = useStore(now);
  return (
    <span class="nowrap num" title={at == null ? "" : `${moment(at)} UTC`}>
      {ago(at, time)}
    </span>
  );
}

export const toast = store<string | null>(null);
let forgotten = 0;

export function say(text: string): void {
  toast.set(text);
  clearTimeout(forgotten);
  forgotten = window.setTimeout(() => toast.set(null), 3500);
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    say("The browser did not allow copying");
  }
}

export function CopyButton({
  text,
  children,
  kind = "quiet tiny",
}: Children & { text: string; kind?: string }) {
  const [done, setDone] = useState(false);
  const press = async () => {
    await copy(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button
      kind={kind}
      icon={done ? "check" : "copy"}
      label={children ? undefined : "Copy"}
      onPress={press}
    >
      {children}
    </Button>
  );
}

const TOKEN =
  /(--[^\n]*)|('(?:[^']|'')*')|\b(SELECT|FROM|WHERE|GROUP|BY|ORDER|HAVING|LIMIT|AS|CREATE|VIEW|STREAM|TABLE|RULE|WATCH|SINK|INTO|WITH|WINDOW|JOIN|LEFT|RIGHT|FULL|INNER|OUTER|ON|AND|OR|NOT|IN|IS|NULL|CASE|WHEN|THEN|ELSE|END|INTERVAL|DISTINCT|FILTER|UNION|ALL|SEVERITY|SUPPRESS|FOR|PER|NOTIFY|PATTERN|DEFINE|MEASURES|PARTITION|WITHIN|MATCH_RECOGNIZE|WATERMARK|DELAY|OF|DESC|ASC|LIKE|BETWEEN|USING|LOCATION)\b/gi;

/** Highlighted SQL; every piece is a text node. */
export function Sql({ text }: { text: string }) {
  const pieces: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(TOKEN)) {
    pieces.push(text.slice(from, found.index));
    const kind = found[1] ? "com" : found[2] ? "str" : "kw";
    pieces.push(<span class={kind}>{found[0]}</span>);
    from = found.index + found[0].length;
  }
  pieces.push(text.slice(from));
  return <Block copy={text}>{pieces}</Block>;
}

/** `end` scrolls to the last lines, as for a log. */
export function Code({ text, wrap, end }: { text: string; wrap?: boolean; end?: boolean }) {
  return (
    <Block copy={text} wrap={wrap} end={end}>
      {text}
    </Block>
  );
}

function Block({
  copy: text,
  wrap,
  end,
  children,
}: Children & { copy: string; wrap?: boolean; end?: boolean }) {
  const ref = useRef<HTMLPreElement>(null);
  const follows = useRef(Boolean(end));
  // Does not scroll if the user has scrolled up.
  const scrolled = ({ currentTarget: at }: { currentTarget: HTMLPreElement }) => {
    follows.current = Boolean(end) && at.scrollHeight - at.clientHeight - at.scrollTop < 40;
  };
  useEffect(() => {
    if (follows.current && ref.current) ref.current.scrollTop = ref.current.scrollHeight;
  }, [text]);
  return (
    <div class={`code${wrap ? " wrap" : ""}`}>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is of a form; this names what scrolls. */}
      <pre
        ref={ref}
        onScroll={end ? scrolled : undefined}
        tabIndex={0}
        role="group"
        aria-label="code"
      >
        {children}
      </pre>
      <span class="copy">
        <CopyButton text={text} />
      </span>
    </div>
  );
}

/** An empty page, with what to do next. */
export function Empty({
  title,
  children,
  command,
}: Children & { title: string; command?: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
      {command && <Code text={command} />}
    </div>
  );
}

export function Notice({ of, tone = "bad" }: { of: unknown; tone?: "bad" | "warn" }) {
  const said = of instanceof Error ? of : new Error(String(of));
  const more = said instanceof Problem ? [said.detail, said.hint, said.origin].filter(Boolean) : [];
  return (
    <div class={`notice ${tone}`} role="alert">
      <Dot tone={tone} />
      <div>
        <p>
          <strong>{said.message}</strong>
        </p>
        {more.map((line) => (
          <p class="small" key={line}>
            {line}
          </p>
        ))}
      </div>
    </div>
  );
}

export function Waiting({ what = "Loading" }: { what?: string }) {
  return (
    <p class="muted" role="status">
      {what} …
    </p>
  );
}

export function Switch<T extends string>({
  of,
  value,
  onChange,
  label,
}: {
  of: readonly (readonly [T, string])[];
  value: T;
  onChange: (next: T) => void;
  label: string;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset belongs to a form; these buttons act immediately.
    <div class="switch" role="group" aria-label={label}>
      {of.map(([key, name]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onChange(key)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export function Tabs<T extends string>({
  of,
  value,
  onChange,
  label,
}: {
  of: readonly (readonly [T, string])[];
  value: T;
  onChange: (next: T) => void;
  label: string;
}) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const at = of.findIndex(([key]) => key === value);
    onChange(of[(at + step + of.length) % of.length]![0]);
    const list = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {of.map(([key, name]) => (
        <button
          type="button"
          role="tab"
          key={key}
          aria-selected={key === value}
          tabIndex={key === value ? 0 : -1}
          onClick={() => onChange(key)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** A modal dialog; the browser keeps the focus in it and closes it with Esc. */
export function Dialog({
  title,
  kind = "",
  onClose,
  children,
}: Children & {
  title: string;
  kind?: string;
  onClose: () => void;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  const outside = ({ clientX: x, clientY: y }: MouseEvent) => {
    // By coordinates, because the target is the dialog for its scrollbar too.
    const { left, right, top, bottom } = ref.current!.getBoundingClientRect();
    if (x < left || x > right || y < top || y > bottom) onClose();
  };
  return (
    <dialog ref={ref} class={kind} aria-label={title} onClose={onClose} onMouseDown={outside}>
      <div class="head">
        <h2>{title}</h2>
        <Button kind="quiet" icon="close" label="Close" onPress={onClose} />
      </div>
      <div class="inside">{children}</div>
    </dialog>
  );
}

/** Asks for confirmation; stays open with the error if the action fails. */
export function Confirm({
  title,
  verb,
  danger,
  onDo,
  onClose,
  children,
}: Children & {
  title: string;
  verb: string;
  danger?: boolean;
  onDo: () => Promise<unknown>;
  onClose: () => void;
}) {
  const [problem, setProblem] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    try {
      await onDo();
      onClose();
    } catch (error) {
      setProblem(error as Error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {problem && <Notice of={problem} />}
      <div class="row end">
        <Button onPress={onClose}>Leave it</Button>
        <Button kind={danger ? "danger" : "primary"} disabled={busy} onPress={() => void go()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}

/** Shows which grant is missing, and who can give it. */
export function Needs({
  what,
  may,
  on,
  user,
}: {
  what: ComponentChildren;
  may: string;
  on: string;
  user: string;
}) {
  return (
    <Empty title="Not allowed" command={`headrace grant add ${user} ${may} '${on}'`}>
      <p>
        {what} requires <b>{may}</b> on <b>{on === "*" ? "everything" : on}</b>. A user who manages
        users can grant it:
      </p>
    </Empty>
  );
}
