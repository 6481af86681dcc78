// What workflows did about a contact.
import { useEffect } from "preact/hooks";

import { agentId, href, onChange, path, useQuery, type API } from "../data";
import { Badge, Load, Name, When } from "../ui";

/** The newest executions that are about a contact. */
export function ContactExecutions({ id, limit }: { id: string; limit: number }) {
  const found = useQuery(path("agents", agentId.value, "workflows", "executions"), { contact_id: id, limit });
  const names = useQuery(found.data.value?.executions.length ? path("agents", agentId.value, "workflows") : null, {
    limit: 200,
  });
  useEffect(() => onChange("execution", found.reloadThrottled), [found]);
  const nameOf = (x: API.ExecutionItem) =>
    names.data.value?.workflows.find((w) => w.id === x.workflow_id)?.name ?? "Workflow";
  return (
    <Load of={found} lines={2}>
      {({ executions, meta }) =>
        executions.length ? (
          <>
            <ul class="talks">
              {executions.map((x) => (
                <li key={x.id}>
                  <a href={href(agentId.value, "workflows", "executions", x.id)}>
                    <span class="row nowrap">
                      <b class="grow clip">
                        <Name>{nameOf(x)}</Name>
                      </b>
                      <Badge>{x.status}</Badge>
                      <span class="muted small">
                        <When time={x.started_at ?? x.created_at} />
                      </span>
                    </span>
                    {x.error && (
                      <span class="issue small clip">
                        <bdi>{x.error.message}</bdi>
                      </span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
            {meta.total > executions.length && (
              <p class="muted small">
                The newest {executions.length} of {meta.total.toLocaleString()}.
              </p>
            )}
          </>
        ) : (
          <p class="muted">No workflow has run for this contact yet.</p>
        )
      }
    </Load>
  );
}
