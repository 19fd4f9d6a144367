/** The header of a screen and its content. */

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
