/** Tokens without their secrets, and creating one: its secret is shown once. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { now } from "../live";
import { useStore } from "../store";
import { Ago, Badge, Button, Code, Confirm, Dialog, Notice, say, Waiting } from "../ui/parts";
import { Table } from "../ui/table";
import { EVERYTHING, OPERATIONS } from "../who";
import type { Token } from "../wire";

const LIVES = [
  ["1 day", "1 day"],
  ["30 days", "30 days"],
  ["90 days", "90 days"],
  ["365 days", "a year"],
] as const;

export function TokenTable({
  of,
  onChange,
  owner,
}: {
  of: Token[] | null;
  onChange: () => void;
  owner?: boolean;
}) {
  const [asked, setAsked] = useState<Token | null>(null);
  if (!of)
    return (
      <p class="empty">
        <Waiting />
      </p>
    );
  if (!of.length)
    return (
      <p class="muted">No token yet. A token authenticates a user, or a program of that user.</p>
    );
  return (
    <>
      <Table
        label="Tokens"
        of={of}
        keyOf={(one) => one.id}
        scroll
        columns={[
          ...(owner ? [{ name: "User", show: (one: Token) => <strong>{one.user}</strong> }] : []),
          {
            name: "Token",
            show: (one) => (
              <>
                {one.name || <span class="muted">no name</span>}{" "}
                <span class="mono muted">{one.id}</span>
              </>
            ),
          },
          { name: "Carries", show: (one) => <Carries of={one} /> },
          { name: "Made", show: (one) => <Ago at={one.made_at} /> },
          { name: "Ends", show: (one) => <Ends of={one} /> },
          {
            name: "",
            right: true,
            show: (one) =>
              !one.revoked_at && (
                <Button
                  kind="danger tiny"
                  label={`Revoke ${one.name || one.id}`}
                  onPress={() => setAsked(one)}
                >
                  Revoke
                </Button>
              ),
          },
        ]}
      />
      {asked && (
        <Confirm
          title={`Revoke ${asked.name || asked.id}?`}
          verb="Revoke"
          danger
          onClose={() => setAsked(null)}
          onDo={async () => {
            await api.revokeToken(asked.id);
            say("The token is not valid any more");
            onChange();
          }}
        >
          <p>
            The token of <b>{asked.user}</b> and the sessions that it opened are valid no more, at
            once. It cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  );
}

function Carries({ of: { may, on } }: { of: Token }) {
  if (!may.length && !on.length) return <span class="muted">all grants of its user</span>;
  return (
    <>
      {may.join(", ") || "all"}
      {on.length > 0 && (
        <>
          {" "}
          on <span class="mono">{on.join(", ")}</span>
        </>
      )}
    </>
  );
}

function Ends({ of }: { of: Token }) {
  const time = useStore(now);
  if (of.revoked_at) return <Badge>revoked</Badge>;
  return Date.parse(of.expires_at) <= time ? <Badge>ended</Badge> : <Ago at={of.expires_at} />;
}

export function NewToken({
  users,
  user,
  onClose,
  onDone,
}: {
  users: string[];
  user: string;
  onClose: () => void;
  onDone: () => void;
}) {
  const [of, setOf] = useState(user);
  const [name, setName] = useState("");
  const [life, setLife] = useState("90 days");
  const [may, setMay] = useState("");
  const [on, setOn] = useState("");
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const make = async (event: Event) => {
    event.preventDefault();
    try {
      const made = await api.createToken({
        user: of,
        name: name.trim(),
        for: life,
        may: may ? [may] : [],
        on: on.trim() ? [on.trim()] : [],
      });
      setSecret(made.secret);
      onDone();
    } catch (error) {
      setProblem(error as Error);
    }
  };
  if (secret) {
    return (
      <Dialog title={`A token of ${of}`} onClose={onClose}>
        <p>
          <strong>Copy it now: it is shown this once.</strong> Only its digest is stored.
        </p>
        <Code text={secret} wrap />
        <p class="muted small">
          Whoever has it is {of}. Programs take it from <code>HEADRACE_TOKEN</code>.
        </p>
        <div class="row end">
          <Button kind="primary" onPress={onClose}>
            I have it
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Make a token" onClose={onClose}>
      <form class="form" onSubmit={make}>
        <label>
          Of
          <select
            class="input"
            value={of}
            disabled={users.length < 2}
            onChange={(event) => setOf(event.currentTarget.value)}
          >
            {users.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Name
          <input
            class="input"
            placeholder="what it is for"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Valid for
          <select
            class="input"
            value={life}
            onChange={(event) => setLife(event.currentTarget.value)}
          >
            {LIVES.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Carries
          <select class="input" value={may} onChange={(event) => setMay(event.currentTarget.value)}>
            <option value="">all that {of} may</option>
            {OPERATIONS.map((one) => (
              <option key={one} value={one}>
                {one} alone
              </option>
            ))}
          </select>
        </label>
        <label>
          On
          <input
            class="input mono"
            placeholder={`${EVERYTHING}, or stream:clicks`}
            value={on}
            onInput={(event) => setOn(event.currentTarget.value)}
          />
        </label>
        <Button kind="primary" submit>
          Make it
        </Button>
      </form>
      {problem && <Notice of={problem} />}
    </Dialog>
  );
}
