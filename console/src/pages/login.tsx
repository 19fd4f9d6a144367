/** Shown whenever the server answers 401. */

import { useState } from "preact/hooks";
import { api, session } from "../api";
import { Mark } from "../ui/icons";
import { Button, Notice } from "../ui/parts";
import { me } from "../who";

export function Login() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Error | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      me.set(await api.login({ token: token.trim() }));
      session.set("open");
    } catch (error) {
      setProblem(error as Error);
    }
  };
  return (
    <main class="login">
      <form onSubmit={submit}>
        <Mark />
        <h1>Sign in to Headrace</h1>
        <p class="muted">Paste an access token. The first start of a project prints one.</p>
        <label class="stack tight">
          <span class="small">Access token</span>
          <input
            class="input mono"
            type="password"
            autocomplete="current-password"
            value={token}
            required
            autofocus
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <Button kind="primary" submit>
          Sign in
        </Button>
        {problem && <Notice of={problem} />}
      </form>
    </main>
  );
}
