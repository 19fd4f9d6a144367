/** The audit log: every change and every refusal, filtered by user, decision, action and words. The
 *  server applies the filter, which is part of the address.
 */

import { useRef } from "preact/hooks";
import { api } from "../api";
import { count, moment, spoken } from "../format";
import { amend, place } from "../place";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { Badge, Button, Notice, Panel, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import type { AuditLogEntry, AuditLog as Log } from "../wire";

const SHOWN = 200;

export function AuditLog() {
  const { before, of: user, decision, what, text: find } = useStore(place).query;
  const wanted = { limit: SHOWN, before, user, decision, what, find };
  const { value, problem } = useAsked(
    () => api.auditLog(wanted),
    [before, user, decision, what, find],
    before ? 0 : 5000,
  );
  const entries = value?.entries ?? [];
  const users = useSeen(
    user,
    entries.map((one) => one.user),
  );
  const deeds = useSeen(
    what,
    entries.map((one) => one.what),
  );
  return (
    <Panel
      flush
      title="Audit log"
      note={note(value, before)}
      actions={
        <>
          <select
            class="input"
            aria-label="User"
            value={user ?? ""}
            onChange={(event) => choose({ of: event.currentTarget.value })}
          >
            <option value="">all users</option>
            {users.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <select
            class="input"
            aria-label="Decision"
            value={decision ?? ""}
            onChange={(event) => choose({ decision: event.currentTarget.value })}
          >
            <option value="">allowed and refused</option>
            <option>allowed</option>
            <option>refused</option>
          </select>
          <select
            class="input"
            aria-label="What was done"
            value={what ?? ""}
            onChange={(event) => choose({ what: event.currentTarget.value })}
          >
            <option value="">all actions</option>
            {deeds.map((one) => (
              <option key={one} value={one}>
                {spoken(one)}
              </option>
            ))}
          </select>
          <input
            class="input"
            type="search"
            placeholder="Find"
            aria-label="Find in the log"
            value={find ?? ""}
            onInput={(event) => choose({ text: event.currentTarget.value })}
          />
        </>
      }
    >
      {problem && <Notice of={problem} />}
      {!value && !problem && (
        <p class="empty">
          <Waiting />
        </p>
      )}
      {value &&
        (entries.length ? <Entries of={entries} /> : <p class="empty muted">No matching entry.</p>)}
      {(before || entries.length === SHOWN) && (
        <div class="row" style={{ padding: "10px 16px" }}>
          {before && (
            <Button kind="tiny" onPress={() => amend({ before: null })}>
              Newest
            </Button>
          )}
          {entries.length === SHOWN && (
            <Button kind="tiny" onPress={() => amend({ before: String(entries.at(-1)!.number) })}>
              Older
            </Button>
          )}
        </div>
      )}
    </Panel>
  );
}

/** "the newest 200 of 318", or those before an entry. */
function note(of: Log | null, before?: string): string {
  const where = before ? `before entry ${count(Number(before))}` : "the newest";
  if (!of) return where;
  const shown = `${count(of.entries.length)} of ${count(of.total)}`;
  return before ? `${shown}, ${where}` : `${where} ${shown}`;
}

/** Another filter starts with the newest entries. */
const choose = (query: Record<string, string>) => amend({ ...query, before: null });

/** The values seen so far, so that a filter does not hide the other options. */
function useSeen(chosen: string | undefined, values: string[]): string[] {
  const seen = useRef(new Set<string>());
  for (const value of chosen ? [chosen, ...values] : values) seen.current.add(value);
  return [...seen.current].sort();
}

function Entries({ of }: { of: AuditLogEntry[] }) {
  return (
    <Table
      label="Audit log"
      of={of}
      keyOf={(one) => one.number}
      scroll
      columns={[
        { name: "When, UTC", show: (one) => <span class="nowrap num">{moment(one.at)}</span> },
        { name: "User", show: (one) => <strong>{one.user}</strong> },
        {
          name: "Decision",
          show: (one) => (
            <Badge tone={one.decision === "refused" ? "bad" : "ok"}>{one.decision}</Badge>
          ),
        },
        { name: "What", show: (one) => <span class="nowrap">{spoken(one.what)}</span> },
        { name: "On", mono: true, clip: true, show: (one) => one.object },
        {
          name: "Detail",
          fill: true,
          show: (one) => (
            <span class="muted" title={one.detail}>
              {one.detail}
            </span>
          ),
        },
        { name: "Token", mono: true, show: (one) => <span class="muted">{one.token || "–"}</span> },
      ]}
    />
  );
}
