// What can be done with one source.
import { agentId, download, go, href, invalidate, mayEdit, post, put, type API } from "../../data";
import { FormDialog, openDialog, showToast, TextField, type MenuItem } from "../../ui";
import { stopSource } from "../../parts/stop";
import { sourcesAt } from "./paths";
import { isBusy } from "./status";

const isFromSite = ({ type }: API.Source) => type === "crawl" || type === "url";

/** What reading a source again is called. */
export const readAgainLabel = (source: API.Source) => (isFromSite(source) ? "Crawl again" : "Read again");

async function reindex(source: API.Source) {
  await post(sourcesAt(source.id, "reindex"));
  invalidate(sourcesAt());
}

/** Reads a source again from where it came. */
export async function readAgain(source: API.Source) {
  if (isFromSite(source)) await reindex(source);
  else {
    await post(sourcesAt(source.id, "refresh"));
    invalidate(sourcesAt());
  }
  showToast(`${source.name} is being read again`);
}

/** The menu of a source; remove deletes it. */
export function sourceActions(source: API.Source, remove: () => void): MenuItem[] {
  const { id, type } = source;
  const may = mayEdit.value;
  const busy = isBusy(source);
  const reason = may ? undefined : "You have read-only access.";
  const items: MenuItem[] = [{ label: "Open", icon: "Eye", run: () => go(href(agentId.value, "knowledge", id)) }];
  if (type === "file")
    items.push({
      label: "Download the original",
      icon: "Download",
      run: () => download("GET", sourcesAt(id, "file")),
    });
  items.push({
    label: readAgainLabel(source),
    icon: "RefreshCw",
    disabled: !may || busy,
    reason: reason ?? (busy ? "Being processed." : undefined),
    run: () => readAgain(source),
  });
  if (busy) items.push({ label: "Stop", icon: "CircleStop", disabled: !may, reason, run: () => stopSource(source) });
  const openRename = () => {
    openDialog((close) => <Rename source={source} close={close} />);
  };
  items.push(
    { label: "Embed again", icon: "Layers", disabled: !may || busy, reason, run: () => reindex(source) },
    { label: "Rename", icon: "Pencil", disabled: !may, reason, run: openRename },
    "-",
    { label: "Delete", icon: "Trash2", danger: true, disabled: !may, reason, run: remove },
  );
  return items;
}

function Rename({ source: { id, name }, close }: { source: API.Source; close: () => void }) {
  const run = async (values: { name: string }) => {
    await put(sourcesAt(id), values);
    invalidate(sourcesAt());
  };
  return (
    <FormDialog title="Rename" close={close} action="Rename" initial={{ name }} run={run}>
      {(form) => <TextField label="Name" autoFocus required {...form.text("name")} />}
    </FormDialog>
  );
}
