// One of the agent's records, chosen by its name.
import { useState } from "preact/hooks";

import { agentId, type API, path, useQuery } from "../data";
import { SelectField } from "../ui";

type Props = {
  label: string;
  kind: "workflows" | "tools" | "sources";
  value: string;
  onChange: (id: string) => void;
  error?: string;
  hint?: string;
  none?: string;
};

/**
 * A choice of records; where there are very many, they are searched first. none is what choosing no record is called.
 */
export function PickField({ kind, value, none, ...field }: Props) {
  const [search, setSearch] = useState("");
  const found = useQuery(path("agents", agentId.value, kind), {
    limit: 200,
    search: kind === "workflows" ? search : "",
    sort: kind === "workflows" ? "name" : "",
  });
  const answer = found.data.value as
    ({ meta: API.PageMeta } & Partial<Record<Props["kind"], { id: string; name: string }[]>>) | undefined;
  const rows = answer?.[kind] ?? [];
  const many = kind === "workflows" && (search || (answer?.meta.total ?? 0) > rows.length);
  const options: [string, string][] = [
    ["", none ?? (answer && !rows.length ? "None yet" : "Choose…")],
    ...rows.map((r): [string, string] => [r.id, r.name]),
  ];
  if (value && !rows.some((r) => r.id === value)) options.push([value, value]);
  return (
    <div class="stack tight">
      {many && (
        <input
          type="search"
          aria-label={`Search ${kind}`}
          placeholder="Search"
          value={search}
          onInput={(e) => setSearch(e.currentTarget.value)}
        />
      )}
      <SelectField {...field} value={value} options={options} />
    </div>
  );
}
