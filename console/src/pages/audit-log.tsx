/** The audit log: every change and every refusal, by user, decision, deed and words. */

import { api } from "../api";
import { matching, spoken } from "../audit-log";
import { count, moment } from "../format";
import { amend, place } from "../place";
import { useStore } from "../store";
import type { AuditEntry } from "../wire";
import { useAsked } from "../ui/hooks";
import { Badge, Notice, Panel, Waiting } from "../ui/parts";
import { Table } from "../ui/table";

const ASKED = 1000;

export function AuditLog() {
  const { query } = useStore(place);
  const of = query.of ?? "";
  const { value, problem } = useAsked(() => api.auditLog(of, ASKED), [of], 5000);
  const all = value?.entries ?? [];
  const shown = matching(all, query);
  const deeds = [...new Set(all.map((one) => one.what))].sort();
  const users = [...new Set([...all.map((one) => one.user), ...(of ? [of] : [])])].sort();
  return (
    <Panel flush title="Audit log" note={value && `${count(shown.length)} of the newest ${count(all.length)}`} actions={<>
      <select class="input" aria-label="User" value={of} onChange={(event) => amend({ of: event.currentTarget.value })}>
        <option value="">all users</option>{users.map((one) => <option key={one}>{one}</option>)}
      </select>
      <select class="input" aria-label="Decision" value={query.decision ?? ""} onChange={(event) => amend({ decision: event.currentTarget.value })}>
        <option value="">allowed and refused</option><option>allowed</option><option>refused</option>
      </select>
      <select class="input" aria-label="What was done" value={query.what ?? ""} onChange={(event) => amend({ what: event.currentTarget.value })}>
        <option value="">whatever was done</option>{deeds.map((one) => <option key={one} value={one}>{spoken(one)}</option>)}
      </select>
      <input class="input" type="search" placeholder="Find" aria-label="Find in the log" value={query.text ?? ""} onInput={(event) => amend({ text: event.currentTarget.value })} />
    </>}>
      {problem && <Notice of={problem} />}
      {!value && !problem && <p class="empty"><Waiting /></p>}
      {value && (shown.length ? <Entries of={shown} /> : <p class="empty muted">No entry like this.</p>)}
    </Panel>
  );
}

function Entries({ of }: { of: AuditEntry[] }) {
  return (
    <Table label="Audit log" of={of.slice(0, 300)} keyOf={(one) => one.number} scroll columns={[
      { name: "When, UTC", show: (one) => <span class="nowrap num">{moment(one.at)}</span> },
      { name: "User", show: (one) => <strong>{one.user}</strong> },
      { name: "Decision", show: (one) => <Badge tone={one.decision === "refused" ? "bad" : "ok"}>{one.decision}</Badge> },
      { name: "What", show: (one) => <span class="nowrap">{spoken(one.what)}</span> },
      { name: "On", mono: true, clip: true, show: (one) => one.object },
      { name: "Detail", fill: true, show: (one) => <span class="muted" title={one.detail}>{one.detail}</span> },
      { name: "Token", mono: true, show: (one) => <span class="muted">{one.token || "–"}</span> },
    ]} />
  );
}
