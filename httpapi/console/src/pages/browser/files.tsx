// What a session downloaded.
import { useEffect } from "preact/hooks";

import { agentId, type API, download, mayEdit, onChange, path, remove, useQuery } from "../../data";
import { Badge, Button, deleteLater, Icon, Load, size, When } from "../../ui";

const downloadsAt = <const M extends string[]>(...more: M) => path("agents", agentId.value, "downloads", ...more);

/** The tab of a session's downloads. */
export function Files({ id }: { id: string }) {
  const found = useQuery(downloadsAt(), { session_id: id, limit: 100 });
  useEffect(
    () =>
      onChange("session", (change) => {
        if (change.id === id) void found.reload();
      }),
    [found, id],
  );
  const deleteFile = (file: API.Download) => {
    found.set((list) => ({ ...list, downloads: list.downloads.filter((other) => other.id !== file.id) }));
    deleteLater(
      `${file.name} is deleted`,
      () => remove(downloadsAt(file.id)),
      () => void found.reload(),
    );
  };
  return (
    <div class="session-files">
      <Load of={found}>
        {({ downloads }) => (
          <>
            {!downloads.length && <p class="muted small">No downloads.</p>}
            <ul class="plain">
              {downloads.map((file) => (
                <FileItem key={file.id} file={file} remove={() => deleteFile(file)} />
              ))}
            </ul>
          </>
        )}
      </Load>
    </div>
  );
}

function FileItem({ file, remove }: { file: API.Download; remove: () => void }) {
  const failed = file.status === "failed";
  return (
    <li class="row nowrap">
      <Icon name="FileText" size={16} />
      <span class="grow">
        <bdi>{file.name}</bdi>{" "}
        <span class="muted small">
          {size(file.size)} · <When time={file.created_at} />
        </span>
        {failed && (
          <>
            {" "}
            <Badge title={file.error}>failed</Badge>
          </>
        )}
      </span>
      {!failed && (
        <Button
          kind="quiet"
          icon="Download"
          label={`Download ${file.name}`}
          onClick={() => download("GET", downloadsAt(file.id))}
        />
      )}
      {mayEdit.value && <Button kind="quiet" icon="Trash2" label={`Delete ${file.name}`} onClick={remove} />}
    </li>
  );
}
