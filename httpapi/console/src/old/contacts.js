// Contacts: the list, one in a form, and CSV in and out.
import { download, get, post, put, remove, upload } from "./api.js";
import { confirm, dialog } from "./dialog.js";
import { badge, button, h, pager, pretty, settled, table } from "./dom.js";
import { form, object } from "./form.js";

export async function contacts(page, { at, may, signal }) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Name, email or phone", "aria-label": "Search contacts" });
  const tag = h("input", { type: "search", placeholder: "Tag", "aria-label": "Only with this tag", class: "short" });
  let offset = 0;
  const load = async () => {
    const found = await get(at("contacts"), { search: search.value, tag: tag.value, limit: 25, offset }, signal);
    const empty = search.value || tag.value ? "Nobody fits." : "No contacts yet. Add one, or import a CSV file.";
    list.replaceChildren(table([
      ["Name", (c) => c.name], ["Email", (c) => c.email], ["Phone", (c) => c.phone], ["Chat bot", (c) => c.chatbot_a],
      ["Tags", (c) => c.tags.map((t) => badge(t))],
      ["", (c) => may && [button("Edit", async () => edit(await get(at("contacts", c.id)), at, load)),
        h("button", { type: "button", class: "danger", click: () => confirm(`Delete ${c.name}?`, "The contact is deleted; conversations with it stay.", "Delete",
          async () => { await remove(at("contacts", c.id)); await load(); }) }, "Delete")], "actions"],
    ], found.contacts, empty), found.meta.total ? pager(found.meta, (to) => { offset = to; return load(); }) : "");
  };
  const first = settled(() => { offset = 0; return load(); });
  search.addEventListener("input", first);
  tag.addEventListener("input", first);
  page.append(h("h1", { tabindex: -1 }, "Contacts"),
    h("div", { class: "row" }, search, tag, h("span", { class: "grow" }),
      may && h("button", { type: "button", click: () => importFile(at, load) }, "Import"),
      button("Export CSV", () => download("GET", at("contacts", "export"), { format: "csv" })),
      button("Export JSON", () => download("GET", at("contacts", "export"), { format: "json" })),
      may && h("button", { type: "button", class: "main", click: () => edit(null, at, load) }, "New contact")), list);
  await load();
}

const texts = [["name", "Name"], ["email", "Email"], ["phone", "Phone"], ["chatbot_a", "First chat bot: user name"], ["chatbot_b", "Second chat bot: number"],
  ["social_handle", "Social handle"], ["external_id", "Id in another system"]];

function edit(contact, at, done) {
  dialog(contact ? contact.name : "New contact", (close) => form([
    ...texts.map(([name, label]) => ({ name, label, value: contact?.[name], required: name === "name" })),
    { name: "tags", label: "Tags", value: contact?.tags.join(", "), hint: "With commas between." },
    { name: "notes", label: "Notes", type: "textarea", rows: 3, value: contact?.notes },
    { name: "metadata", label: "Metadata", type: "textarea", code: true, rows: 3, value: pretty(contact?.metadata ?? {}), hint: "A JSON object." },
  ], { submit: contact ? "Save" : "Add", cancel: close, wide: true, run: async (values) => {
    const body = { ...values, tags: values.tags.split(","), metadata: object(values.metadata, "metadata") };
    await (contact ? put(at("contacts", contact.id), body) : post(at("contacts"), body));
    close();
    await done();
  } }));
}

function importFile(at, done) {
  dialog("Import contacts", (close) => {
    const outcome = h("div", { class: "outcome", "aria-live": "polite" });
    const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Sent so far" });
    return [
      h("p", {}, "A CSV file with a header line: name, email, phone, chatbot_a, tags and other fields of a contact. Unknown columns become metadata."),
      form([{ name: "file", label: "File", type: "file", accept: ".csv,text/csv", required: true },
        { name: "on_duplicate", label: "Contacts that are there already", type: "select",
          options: [["update", "are updated"], ["skip", "are left alone"], ["error", "are reported"]] }],
      { submit: "Import", extra: h("button", { type: "button", click: close }, "Close"), run: async (values) => {
        bar.hidden = false;
        const r = await upload(at("contacts", "import"), { on_duplicate: values.on_duplicate, file: values.file[0] }, (share) => { bar.value = share; })
          .finally(() => { bar.hidden = true; });
        outcome.replaceChildren(h("p", {}, `${r.total} in the file: ${r.imported} new, ${r.updated} updated, ${r.skipped} left alone, ${r.errors.length} wrong.`),
          r.errors.length ? table([["Line", (e) => e.row, "number"], ["Field", (e) => e.field], ["Issue", (e) => e.issue]], r.errors.slice(0, 100), "") : "");
        await done();
      } }), bar, outcome];
  });
}
