/** Users with their grants and tokens, and the audit log; only oneself without `manage`. */

import { useState } from "preact/hooks";
import { api } from "../api";
import { serverNow } from "../clock";
import { plural } from "../format";
import { status } from "../live";
import { amend, place } from "../place";
import { paths } from "../server";
import { useStore } from "../store";
import { useAsked } from "../ui/hooks";
import { PageHead } from "../ui/page";
import {
  Ago,
  Badge,
  Button,
  Confirm,
  Dialog,
  Needs,
  Notice,
  Panel,
  say,
  Tabs,
  Waiting,
} from "../ui/parts";
import { Table } from "../ui/table";
import { allows, EVERYTHING, me, narrowed, OPERATIONS, ROLES } from "../who";
import type { Grant, Token, User } from "../wire";
import { AuditLog } from "./audit-log";
import { NewToken, TokenTable } from "./tokens";

const TABS = [
  ["users", "Users"],
  ["tokens", "Tokens"],
  ["log", "Audit log"],
] as const;
type Tab = (typeof TABS)[number][0];

export function UsersPage() {
  const { query } = useStore(place);
  const who = useStore(me);
  const manages = allows(who, "manage", EVERYTHING);
  const [adding, setAdding] = useState<"user" | "token" | null>(null);
  const users = useAsked(
    async () => (manages ? (await api.ask("users")).users : []),
    [manages],
    10_000,
  );
  const grants = useAsked(
    async () => (manages ? (await api.ask("grants")).grants : []),
    [manages],
    10_000,
  );
  const tokens = useAsked(async () => (await api.ask("tokens")).tokens, [], 10_000);
  const again = () => {
    for (const one of [users, grants, tokens]) one.again();
    // The change may affect the grants of the signed-in user.
    void api.ask("session").then(me.set, () => undefined);
  };
  const tab: Tab = TABS.find(([key]) => key === query.tab)?.[0] ?? "users";
  const chosen = users.value?.find((one) => one.name === query.user) ?? null;
  const problem = users.problem ?? grants.problem ?? tokens.problem;
  if (!who)
    return (
      <div class="content">
        <Waiting />
      </div>
    );
  return (
    <>
      <PageHead
        title="Users"
        about="who may do what: allowed is what some grant covers, and nothing else"
      >
        {manages && (
          <Button kind="tiny" icon="plus" onPress={() => setAdding("user")}>
            Add a user
          </Button>
        )}
        {!narrowed(who) && (
          <Button kind="tiny" icon="plus" onPress={() => setAdding("token")}>
            Make a token
          </Button>
        )}
      </PageHead>
      <div class="content">
        <Tabs
          label="Users, tokens and the audit log"
          of={TABS}
          value={tab}
          onChange={(next) => amend({ tab: next === "users" ? null : next })}
        />
        {problem && <Notice of={problem} />}
        {tab === "users" &&
          (manages ? (
            <UserTable
              users={users.value}
              grants={grants.value ?? []}
              tokens={tokens.value ?? []}
              onChoose={(user) => amend({ user: user.name })}
            />
          ) : (
            <Yourself />
          ))}
        {tab === "tokens" && (
          <Panel
            flush
            title="Tokens"
            note={
              manages
                ? "of all users; a secret is shown once, when it is made"
                : "yours; a secret is shown once, when it is made"
            }
          >
            <TokenTable of={tokens.value} onChange={again} owner={manages} />
          </Panel>
        )}
        {tab === "log" &&
          (allows(who, "audit", EVERYTHING) ? (
            <AuditLog />
          ) : (
            <Panel>
              <Needs what="Reading the audit log" may="audit" on="*" user={who.user} />
            </Panel>
          ))}
      </div>
      {adding === "user" && <AddUser onClose={() => setAdding(null)} onDone={again} />}
      {adding === "token" && (
        <NewToken
          users={manages ? (users.value?.map((user) => user.name) ?? []) : [who.user]}
          user={who.user}
          onClose={() => setAdding(null)}
          onDone={again}
        />
      )}
      {chosen && (
        <UserPanel
          of={chosen}
          grants={(grants.value ?? []).filter((one) => one.user === chosen.name)}
          tokens={(tokens.value ?? []).filter((one) => one.user === chosen.name)}
          onChange={again}
          onClose={() => amend({ user: null })}
        />
      )}
    </>
  );
}

const live = (tokens: Token[]): Token[] =>
  tokens.filter((one) => !one.revoked_at && Date.parse(one.expires_at) > serverNow());

function UserTable({
  users,
  grants,
  tokens,
  onChoose,
}: {
  users: User[] | null;
  grants: Grant[];
  tokens: Token[];
  onChoose: (user: User) => void;
}) {
  if (!users) return <Waiting />;
  return (
    <Panel
      flush
      title="Users"
      note={`${plural(users.length, "user")}, press one to change what they may do`}
    >
      <Table
        label="Users"
        of={users}
        keyOf={(user) => user.name}
        onPress={onChoose}
        scroll
        columns={[
          { name: "User", show: (user) => <strong>{user.name}</strong> },
          {
            name: "May",
            fill: true,
            show: (user) => {
              const own = grants.filter((one) => one.user === user.name);
              return own.length ? (
                <span class="row">
                  {own.map((one) => (
                    <Granted key={`${one.may} ${one.on}`} of={one} />
                  ))}
                </span>
              ) : (
                <span class="muted">nothing</span>
              );
            },
          },
          {
            name: "Tokens",
            right: true,
            show: (user) => live(tokens.filter((one) => one.user === user.name)).length,
          },
          {
            name: "Added",
            show: (user) => (
              <span class="nowrap">
                <Ago at={user.made_at} /> <span class="muted">by {user.made_by}</span>
              </span>
            ),
          },
        ]}
      />
    </Panel>
  );
}

const Granted = ({ of }: { of: { may: string; on: string } }) => (
  <Badge tone={of.may === "admin" ? "accent" : "idle"}>
    {of.may}
    {of.on === EVERYTHING ? "" : ` on ${of.on}`}
  </Badge>
);

/** The page of a user who may not manage users: only their own entry. */
function Yourself() {
  const who = useStore(me)!;
  return (
    <div class="columns">
      <Panel flush title={who.user} note="what you may do">
        {who.granted.length ? (
          <Table
            label="What you may do"
            of={who.granted}
            keyOf={(one) => `${one.may} ${one.on}`}
            columns={[
              { name: "Granted", show: (one) => <Badge>{one.may}</Badge> },
              {
                name: "On",
                mono: true,
                show: (one) => (one.on === EVERYTHING ? "everything" : one.on),
              },
              {
                name: "That is",
                show: (one) => <span class="muted">{one.operations.join(", ")}</span>,
              },
            ]}
          />
        ) : (
          <p class="empty muted">Nothing is granted to you yet.</p>
        )}
        {narrowed(who) && (
          <p class="empty muted">
            The token that you have signed in with carries less:{" "}
            {[who.may.join(", "), who.on.join(", ")].filter(Boolean).join(" on ")}.
          </p>
        )}
      </Panel>
      <Panel>
        <Needs what="Managing users" may="manage" on="*" user={who.user} />
      </Panel>
    </div>
  );
}

function AddUser({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("viewer");
  const [problem, setProblem] = useState<Error | null>(null);
  const add = async (event: Event) => {
    event.preventDefault();
    try {
      const made = await api.addUser(name.trim(), role || null);
      say(`${made.name} is a user now; a token lets them in`);
      onDone();
      onClose();
      amend({ user: made.name, tab: null });
    } catch (error) {
      setProblem(error as Error);
    }
  };
  return (
    <Dialog title="Add a user" onClose={onClose}>
      <form class="form" onSubmit={add}>
        <label>
          Name
          <input
            class="input"
            required
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          Role on everything
          <select
            class="input"
            value={role}
            onChange={(event) => setRole(event.currentTarget.value)}
          >
            <option value="">none: may do nothing yet</option>
            {ROLES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <Button kind="primary" submit>
          Add
        </Button>
      </form>
      {problem && <Notice of={problem} />}
      <p class="muted small">
        Roles on less than everything, and single operations, are granted afterwards.
      </p>
    </Dialog>
  );
}

function UserPanel({
  of,
  grants,
  tokens,
  onChange,
  onClose,
}: {
  of: User;
  grants: Grant[];
  tokens: Token[];
  onChange: () => void;
  onClose: () => void;
}) {
  const [asked, setAsked] = useState<"remove" | "token" | Grant | null>(null);
  return (
    <Dialog title={of.name} kind="side" onClose={onClose}>
      <p class="muted">
        Added <Ago at={of.made_at} /> by {of.made_by}.
      </p>
      <section class="stack tight">
        <h2>May</h2>
        {grants.length ? (
          <Table
            label={`Grants of ${of.name}`}
            of={grants}
            keyOf={(one) => `${one.may} ${one.on}`}
            columns={[
              {
                name: "Granted",
                show: (one) => (
                  <Badge tone={one.may === "admin" ? "accent" : "idle"}>{one.may}</Badge>
                ),
              },
              {
                name: "On",
                mono: true,
                show: (one) => (one.on === EVERYTHING ? "everything" : one.on),
              },
              {
                name: "By",
                show: (one) => (
                  <span class="muted">
                    {one.made_by}, <Ago at={one.made_at} />
                  </span>
                ),
              },
              {
                name: "",
                right: true,
                show: (one) => (
                  <Button
                    kind="danger tiny"
                    label={`Take back ${one.may} on ${one.on}`}
                    onPress={() => setAsked(one)}
                  >
                    Take back
                  </Button>
                ),
              },
            ]}
          />
        ) : (
          <p class="muted">Nothing. Grant a role or one operation:</p>
        )}
        <AddGrant user={of.name} onDone={onChange} />
      </section>
      <section class="stack tight">
        <div class="row">
          <h2 class="grow">Tokens</h2>
          <Button kind="tiny" icon="plus" onPress={() => setAsked("token")}>
            Make a token
          </Button>
        </div>
        <TokenTable of={tokens} onChange={onChange} />
      </section>
      <div class="row end">
        <Button kind="danger" onPress={() => setAsked("remove")}>
          Remove {of.name}
        </Button>
      </div>
      {asked === "token" && (
        <NewToken
          users={[of.name]}
          user={of.name}
          onClose={() => setAsked(null)}
          onDone={onChange}
        />
      )}
      {asked === "remove" && (
        <Confirm
          title={`Remove ${of.name}?`}
          verb="Remove"
          danger
          onClose={() => setAsked(null)}
          onDo={async () => {
            await api.removeUser(of.name);
            say(`${of.name} is no user any more`);
            onChange();
            onClose();
          }}
        >
          <p>
            Their tokens, sessions and grants go with them, at once. What they did stays in the
            audit log.
          </p>
        </Confirm>
      )}
      {asked && typeof asked === "object" && (
        <Confirm
          title={`Take back ${asked.may} on ${asked.on === EVERYTHING ? "everything" : asked.on}?`}
          verb="Take back"
          danger
          onClose={() => setAsked(null)}
          onDo={async () => {
            await api.takeBack(asked.user, asked.may, asked.on);
            say(`${of.name} has it no more`);
            onChange();
          }}
        >
          <p>It counts at once, also for tokens and sessions that {of.name} has now.</p>
        </Confirm>
      )}
    </Dialog>
  );
}

function AddGrant({ user, onDone }: { user: string; onDone: () => void }) {
  const project = useStore(status);
  const known = useStore(paths);
  const jobs =
    useAsked(async () => (known.has("/v1/jobs") ? (await api.ask("jobs")).jobs : []), [known])
      .value ?? [];
  const [may, setMay] = useState("viewer");
  const [on, setOn] = useState(EVERYTHING);
  const [problem, setProblem] = useState<Error | null>(null);
  const objects = project
    ? [
        EVERYTHING,
        `job:${project.name}`,
        ...project.streams.map((one) => `stream:${one.name}`),
        ...project.views.map((one) => `view:${one.name}`),
        ...project.rules.map((one) => `rule:${one.name}`),
      ]
    : [EVERYTHING, ...jobs.map((one) => `job:${one.name}`)];
  const grant = async (event: Event) => {
    event.preventDefault();
    try {
      const made = await api.grant(user, may, on.trim());
      say(`${user} has ${made.may} on ${made.on === EVERYTHING ? "everything" : made.on}`);
      setProblem(null);
      onDone();
    } catch (error) {
      setProblem(error as Error);
    }
  };
  return (
    <>
      <form class="form" onSubmit={grant}>
        <label>
          Role or operation
          <select class="input" value={may} onChange={(event) => setMay(event.currentTarget.value)}>
            <optgroup label="Roles">
              {ROLES.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </optgroup>
            <optgroup label="Operations">
              {OPERATIONS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </optgroup>
          </select>
        </label>
        <label>
          On
          <input
            class="input mono"
            list="objects"
            required
            value={on}
            onInput={(event) => setOn(event.currentTarget.value)}
          />
        </label>
        <datalist id="objects">
          {objects.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <Button submit>Grant</Button>
      </form>
      {problem && <Notice of={problem} />}
    </>
  );
}
