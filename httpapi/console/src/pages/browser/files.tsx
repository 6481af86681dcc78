// What a session downloaded.
import { useEffect } from "preact/hooks";

import { agentId, type API, download, mayEdit, onChange, path, remove, useQuery } from "../../data";
import { Badge, Button, deleteLater, Icon, Load, size, When } from "../../ui";

type File = API.Download;

export function Files({ id }: { id: string }) {
  const list = path("agents", agentId.value, "downloads");
  const found = useQuery<{ downloads: File[] }>(list, { session_id: id, limit: 100 });
  useEffect(
    () =>
      onChange("session", (c) => {
        if (c.id === id) void found.reload();
      }),
    [found, id],
  );
  const drop = (f: File) => {
    found.set((d) => ({ ...d, downloads: d.downloads.filter((x) => x.id !== f.id) }));
    deleteLater(
      `${f.name} is deleted`,
      () => remove(`${list}/${encodeURIComponent(f.id)}`),
      () => {
        void found.reload();
      },
    );
  };
  return (
    <div class="session-files">
      <Load of={found}>
        {({ downloads }) => (
          <>
            {!downloads.length && <p class="muted small">No downloads.</p>}
            <ul class="plain">
              {downloads.map((f) => (
                <li key={f.id} class="row nowrap">
                  <Icon name="FileText" size={16} />
                  <span class="grow">
                    <bdi>{f.name}</bdi>{" "}
                    <span class="muted small">
                      {size(f.size)} · <When time={f.created_at} />
                    </span>
                    {f.status === "failed" && (
                      <>
                        {" "}
                        <Badge title={f.error}>failed</Badge>
                      </>
                    )}
                  </span>
                  {f.status !== "failed" && (
                    <Button
                      kind="quiet"
                      icon="Download"
                      label={`Download ${f.name}`}
                      onClick={() => download("GET", `${list}/${encodeURIComponent(f.id)}`)}
                    />
                  )}
                  {mayEdit.value && (
                    <Button kind="quiet" icon="Trash2" label={`Delete ${f.name}`} onClick={() => drop(f)} />
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </Load>
    </div>
  );
}
