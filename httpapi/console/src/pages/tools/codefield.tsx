import type { ComponentProps } from "preact";

import { Code } from "../../ui";

type Props = Omit<ComponentProps<typeof Code>, "invalid"> & { issue?: string; hint: string };

/** A code editor with its label, and a hint or what is wrong. */
export function CodeField({ issue, hint, ...code }: Props) {
  return (
    <div class={issue ? "field wrong" : "field"}>
      <span class="label">{code.label}</span>
      <Code {...code} invalid={Boolean(issue)} />
      {issue ? (
        <small class="issue" role="alert">
          {issue}
        </small>
      ) : (
        <small class="muted">{hint}</small>
      )}
    </div>
  );
}
