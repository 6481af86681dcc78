// A field of names and values, such as the headers of a request.
import { useContext, useEffect, useState } from "preact/hooks";

import { AddRow, Button } from "../ui";
import { asObject, type ControlProps } from "./fieldframe";
import { isTemplateText, JsonField, parseOrText } from "./jsonfield";
import { NodeContext, ValueField } from "./templatefield";

type Row = [name: string, value: unknown];

/** The object that rows make; those without a name are left out. */
const objectOf = (rows: Row[]) => Object.fromEntries(rows.filter(([name]) => name));

/** Reads a value: numbers, true, false, null and JSON as such, other text as text. */
function readValue(text: string): unknown {
  const looksLikeJson = /^(-?\d|true$|false$|null$|[[{]).*/s.test(text);
  return looksLikeJson && !isTemplateText(text) ? parseOrText(text) : text;
}

/** Names and values in rows, or as JSON. */
export function KeyValueField({ id, schema, value, onChange, path }: ControlProps) {
  const { readonly } = useContext(NodeContext);
  const [asJson, setAsJson] = useState(false);
  const object = asObject(value);
  const [rows, setRows] = useState<Row[]>(Object.entries(object ?? {}));
  useEffect(() => {
    // Rows without a name are not part of the value and stay while it does not change elsewhere.
    if (JSON.stringify(objectOf(rows)) !== JSON.stringify(object ?? {})) setRows(Object.entries(object ?? {}));
  }, [JSON.stringify(object)]);
  const fitsRows = value === undefined || object !== undefined;
  if (asJson || !fitsRows)
    return (
      <>
        <JsonField id={id} value={value} onChange={onChange} />
        {fitsRows && (
          <button type="button" class="link small" onClick={() => setAsJson(false)}>
            As rows
          </button>
        )}
      </>
    );
  const set = (next: Row[]) => {
    setRows(next);
    const changed = objectOf(next);
    onChange(Object.keys(changed).length ? changed : undefined);
  };
  return (
    <div class="key-values">
      {rows.map((row, index) => (
        <KeyValueRow
          key={index}
          row={row}
          index={index}
          title={schema.title}
          onChange={(changed) => set(rows.map((other, i) => (i === index ? changed : other)))}
          onRemove={() => set(rows.filter((_, i) => i !== index))}
        />
      ))}
      {!readonly && (
        <AddRow title="Add" of={schema.title} add={() => setRows([...rows, ["", ""]])}>
          <button
            type="button"
            class="link small"
            aria-label={`As JSON: ${schema.title}`}
            data-path={path}
            onClick={() => setAsJson(true)}
          >
            As JSON
          </button>
        </AddRow>
      )}
    </div>
  );
}

type RowProps = {
  row: Row;
  index: number;
  title?: string;
  onChange: (row: Row) => void;
  onRemove: () => void;
};

function KeyValueRow({ row: [name, value], index, title, onChange, onRemove }: RowProps) {
  const { readonly } = useContext(NodeContext);
  return (
    <div class="key-value">
      <input
        value={name}
        aria-label={`${title}: name ${index + 1}`}
        placeholder="name"
        readOnly={readonly}
        onInput={(e) => onChange([e.currentTarget.value, value])}
      />
      <ValueField
        value={value}
        read={readValue}
        label={`${title}: value of ${name || index + 1}`}
        onChange={(changed) => onChange([name, changed])}
      />
      {!readonly && <Button kind="quiet" icon="X" label={`Remove ${name || index + 1}`} onClick={onRemove} />}
    </div>
  );
}
