/** The head of a screen and the room under it. */

import type { ComponentChildren } from "preact";

export function PageHead({
  title,
  about,
  children,
}: {
  title: ComponentChildren;
  about?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <header class="top">
      <div class="titles">
        <h1>{title}</h1>
        {about && <p>{about}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}
