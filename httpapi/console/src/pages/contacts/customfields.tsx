// The custom fields of one contact.
import { useState } from "preact/hooks";

import { get, mayEdit, reasonOf, type API } from "../../data";
import { Button, focusAppeared } from "../../ui";
import { TextCell } from "../../parts/cell";
import { customText, saveCustom, type SaveContact } from "./custom";
import { contactsAt } from "./paths";

type Props = { contact: API.Contact; save: SaveContact };

/** Shows custom fields, changes them in place, adds and removes them. */
export function CustomFields({ contact, save }: Props) {
  const [adding, setAdding] = useState(false);
  const may = mayEdit.value;
  const entries = Object.entries(contact.metadata);
  const removeField = async (key: string) => {
    const { metadata } = await get(contactsAt(contact.id));
    const { [key]: _, ...others } = metadata;
    await save({ metadata: others });
  };
  return (
    <section class="card stack" aria-label="Custom fields">
      <div class="row">
        <h2 class="grow">Custom fields</h2>
        {may && !adding && (
          <Button icon="Plus" onClick={() => setAdding(true)}>
            Add a field
          </Button>
        )}
      </div>
      {entries.length > 0 && (
        <dl class="facts-list editable">
          {entries.map(([key, value]) => (
            <>
              <dt>
                <bdi>{key}</bdi>
              </dt>
              <dd>
                <TextCell
                  label={key}
                  may={may}
                  text={customText(value)}
                  rows={typeof value === "object" && value !== null ? 4 : undefined}
                  save={async (text) => save(await saveCustom(contact.id, key, text))}
                />
                {may && <Button kind="quiet" icon="X" label={`Remove ${key}`} onClick={() => removeField(key)} />}
              </dd>
            </>
          ))}
        </dl>
      )}
      {!entries.length && !adding && (
        <p class="muted">
          None. Imported columns that match no standard field become custom fields, and workflows read them as{" "}
          <code>{"{{contact.metadata.name}}"}</code>.
        </p>
      )}
      {adding && <NewField contact={contact} save={save} close={() => setAdding(false)} />}
    </section>
  );
}

function NewField({ contact, save, close }: Props & { close: () => void }) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [issue, setIssue] = useState("");
  const add = async () => {
    const key = name.trim();
    if (!key) return setIssue("Enter a name.");
    if (key in contact.metadata) return setIssue("A field with this name exists.");
    try {
      const { metadata } = await get(contactsAt(contact.id));
      await save({ metadata: { ...metadata, [key]: value } });
      close();
    } catch (error) {
      setIssue(reasonOf(error));
    }
  };
  return (
    <form
      class="row"
      onSubmit={(e) => {
        e.preventDefault();
        void add();
      }}
    >
      <input
        aria-label="Name of the field"
        placeholder="Name"
        value={name}
        ref={focusAppeared}
        onInput={(e) => setName(e.currentTarget.value)}
      />
      <input
        aria-label="Value of the field"
        placeholder="Value"
        class="grow"
        value={value}
        onInput={(e) => setValue(e.currentTarget.value)}
      />
      <Button kind="primary" submit>
        Add
      </Button>
      <Button onClick={close}>Cancel</Button>
      {issue && (
        <small class="issue" role="alert">
          {issue}
        </small>
      )}
    </form>
  );
}
