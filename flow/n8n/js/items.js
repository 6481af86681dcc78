//@ $collect
// The results that a loop's iterations left under a name.
const $collect = (loop, id) =>
  (loop?.results ?? []).flatMap((r) => {
    const v = r?.[id];
    if (v === undefined) return [];
    return v !== null && typeof v === "object" && !Array.isArray(v) && id in v ? v[id] : v;
  });
//@ $list
// A response as items: a list is one item each.
const $list = (v) =>
  (Array.isArray(v) ? v : v === undefined || v === null || v === "" ? [{}] : [v]).map((one) =>
    one !== null && typeof one === "object" && !Array.isArray(one) ? one : { data: one },
  );
//@ $from
// The items of a node, as n8n's code reads them.
const $from = (all, item) => ({
  all: () => all().map((json) => ({ json })),
  first: () => all().map((json) => ({ json }))[0],
  last: () =>
    all()
      .map((json) => ({ json }))
      .at(-1),
  itemMatching: (i) => ({ json: all()[i] }),
  get item() {
    return { json: item() };
  },
  get json() {
    return item();
  },
  get isExecuted() {
    return all().length > 0;
  },
  context: {},
  params: {},
});
//@ $unpaired
const $unpaired = (name) => {
  throw Object.assign(new Error(`the item of "${name}" that belongs to this one is not known here`), { lasting: true });
};
//@ $try
// An expression that fails is null, as in n8n.
const $try = (f) => {
  try {
    return f();
  } catch (e) {
    if (e?.lasting) throw e;
    return null;
  }
};
//@ $field
// A value as a field of Edit Fields takes it, from version 3 on.
const $field = (name, kind, v) => {
  if (v === null || v === undefined) return null;
  const wrong = () => {
    throw new Error(`'${name}' expects a ${kind} but we got '${v}'`);
  };
  switch (kind) {
    case "number":
      return Number.isNaN(Number(v)) ? wrong() : Number(v);
    case "boolean":
      if (typeof v === "boolean") return v;
      if (["true", "1"].includes(String(v).toLowerCase())) return true;
      return ["false", "0"].includes(String(v).toLowerCase()) ? false : wrong();
    case "string":
      return typeof v === "object" ? JSON.stringify(v) : String(v);
  }
  return v;
};
//@ $text
// A value within a text.
const $text = (v) =>
  v === null || v === undefined
    ? ""
    : typeof v === "object" && !(v instanceof Date) && typeof v.toMillis !== "function"
      ? JSON.stringify(v)
      : String(v);
//@ $out
// What code of n8n returns, as plain items.
const $out = (v) => (Array.isArray(v) ? v : v === null || v === undefined ? [] : [v]).map($one);
//@ $one
const $one = (v) => (v !== null && typeof v === "object" && "json" in v ? v.json : v) ?? {};
//@ $get
// Reads a value by a path with dots.
const $get = (object, path) => {
  if (object !== null && typeof object === "object" && path in object) return object[path];
  return String(path)
    .split(/[.[\]]+/)
    .filter(Boolean)
    .reduce((v, key) => (v === null || v === undefined ? undefined : v[key]), object);
};
//@ $set
// Writes a value by a path with dots.
const $set = (object, path, value) => {
  const keys = String(path)
    .split(/[.[\]]+/)
    .filter(Boolean);
  if (keys.some((key) => key === "__proto__" || key === "constructor" || key === "prototype")) return object;
  let at = object;
  for (const key of keys.slice(0, -1)) at = at[key] = at[key] !== null && typeof at[key] === "object" ? at[key] : {};
  at[keys.at(-1)] = value;
  return object;
};
//@ $unset
const $unset = (object, path) => {
  const keys = String(path).split(".");
  const parent = keys.slice(0, -1).reduce((v, key) => v?.[key], object);
  if (parent) delete parent[keys.at(-1)];
  return object;
};
//@ $copy
const $copy = (v) => JSON.parse(JSON.stringify(v ?? {}));
//@ $only
const $only = (object, names) =>
  names.reduce((out, name) => ($get(object, name) === undefined ? out : $set(out, name, $get(object, name))), {});
//@ $without
const $without = (object, names) => names.reduce((out, name) => $unset(out, name), $copy(object));
//@ $key
// A text that is the same for equal values.
const $key = (v) =>
  JSON.stringify(v, (_, x) =>
    x !== null && typeof x === "object" && !Array.isArray(x)
      ? Object.fromEntries(Object.entries(x).sort(([a], [b]) => (a < b ? -1 : 1)))
      : x,
  ) ?? "undefined";
//@ $compare
const $compare = (a, b) => {
  if (typeof a === "string" && typeof b === "string") [a, b] = [a.toLowerCase(), b.toLowerCase()];
  return a < b ? -1 : a > b ? 1 : 0;
};
//@ $sorted
const $sorted = (items, fields) =>
  items.toSorted((a, b) => {
    for (const { name, down } of fields) {
      const order = $compare($get(a, name), $get(b, name));
      if (order !== 0) return down ? -order : order;
    }
    return 0;
  });
//@ $split
// One item for each entry of lists.
const $split = (items, names, { include = [], others = false, to = [] } = {}) =>
  items.flatMap((json) => {
    const lists = names.map((name) => {
      const v = $get(json, name);
      return v === undefined ? [] : Array.isArray(v) ? v : v !== null && typeof v === "object" ? Object.values(v) : [v];
    });
    const rest = others ? names.reduce((out, name) => $unset(out, name), $copy(json)) : $only(json, include);
    return Array.from({ length: Math.max(0, ...lists.map((list) => list.length)) }, (_, i) => {
      const only = names.length === 1 && !others && include.length === 0 && !to[0];
      if (only && lists[0][i] !== null && typeof lists[0][i] === "object" && !Array.isArray(lists[0][i]))
        return lists[0][i];
      return names.reduce(
        (out, name, n) => (lists[n][i] === undefined && n > 0 ? out : $set(out, to[n] || name, lists[n][i])),
        $copy(rest),
      );
    });
  });
//@ $aggregated
// The values of fields of all items as lists.
const $aggregated = (items, fields, { merge = false, missing = false } = {}) =>
  fields.reduce((out, { from, to }) => {
    let values = items.map((json) => $get(json, from));
    values = missing ? values.map((v) => v ?? null) : values.filter((v) => v !== undefined && v !== null);
    return $set(out, to, merge ? values.flat() : values);
  }, {});
//@ $unique
const $unique = (items, key) => {
  const seen = new Set();
  return items.filter((json) => !seen.has(key(json)) && seen.add(key(json)));
};
//@ $summaries
const $summaries = {
  count: (v) => v.length,
  countUnique: (v) => new Set(v.map($key)).size,
  sum: (v) => v.reduce((a, b) => a + Number(b), 0),
  average: (v) => (v.length === 0 ? 0 : v.reduce((a, b) => a + Number(b), 0) / v.length),
  min: (v) => (v.length === 0 ? null : v.reduce((a, b) => (b < a ? b : a))),
  max: (v) => (v.length === 0 ? null : v.reduce((a, b) => (b > a ? b : a))),
  append: (v) => v,
  concatenate: (v, f) => v.map($text).join(f.separator),
};
//@ $summarized
const $summarized = (items, fields, by) => {
  const groups = new Map();
  for (const json of items) {
    const key = $key(by.map(([path]) => $get(json, path)));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(json);
  }
  return [...groups.values()].map((group) => {
    const out = Object.fromEntries(by.map(([path, name]) => [name, $get(group[0], path)]));
    for (const f of fields) {
      let values = group.map((json) => $get(json, f.name));
      if (!f.empty || (f.how !== "append" && f.how !== "concatenate"))
        values = values.filter((v) => v !== undefined && v !== null && v !== "");
      out[f.to] = $summaries[f.how](values, f);
    }
    return out;
  });
};
//@ $joined
// Two lists of items, joined where fields are equal. An item that lacks one of them
// has no match.
const $joined = (one, two, fields, how, output, multiple, first) => {
  const key = (json, side) => {
    const values = fields.map((f) => $get(json, f[side]));
    return values.includes(undefined) ? undefined : $key(values);
  };
  const inOne = new Map(),
    inTwo = new Map();
  for (const [items, map, side] of [
    [one, inOne, 0],
    [two, inTwo, 1],
  ]) {
    for (const json of items) {
      const k = key(json, side);
      if (k !== undefined) map.set(k, [...(map.get(k) ?? []), json]);
    }
  }
  const pairs = (json) => {
    const found = inTwo.get(key(json, 0)) ?? [];
    return multiple ? found : found.slice(0, 1);
  };
  const both = (a, b) => (first ? { ...b, ...a } : { ...a, ...b });
  const marked = (list, _source) => list.map((json) => ({ ...json, _source }));
  const matched = one.flatMap((json) => pairs(json).map((other) => both(json, other)));
  const loneOne = one.filter((json) => !inTwo.has(key(json, 0))),
    loneTwo = two.filter((json) => !inOne.has(key(json, 1)));
  switch (how) {
    case "keepNonMatches":
      return output === "input1"
        ? loneOne
        : output === "input2"
          ? loneTwo
          : [...marked(loneOne, "input1"), ...marked(loneTwo, "input2")];
    case "keepEverything":
      return [...matched, ...loneOne, ...loneTwo];
    case "enrichInput1":
      return [...matched, ...loneOne];
    case "enrichInput2":
      return [
        ...two.flatMap((json) => {
          const found = inOne.get(key(json, 1)) ?? [];
          return (multiple ? found : found.slice(0, 1)).map((other) => both(other, json));
        }),
        ...loneTwo,
      ];
  }
  return output === "input1"
    ? one.filter((json) => inTwo.has(key(json, 0)))
    : output === "input2"
      ? two.filter((json) => inOne.has(key(json, 1)))
      : matched;
};
//@ $table
const $table = (rows) => {
  const [head = [], ...rest] = rows ?? [];
  return rest.map((cells, i) => ({
    row_number: i + 2,
    ...Object.fromEntries(head.map((name, n) => [name || `col_${n + 1}`, cells[n] ?? ""])),
  }));
};
//@ $same
const $same = (a, b) =>
  (a !== null && typeof a === "object") || (b !== null && typeof b === "object")
    ? typeof a?.toMillis === "function" || a instanceof Date
      ? +a === +b
      : $key(a) === $key(b)
    : a === b || (typeof a !== typeof b && a !== null && b !== null && String(a) === String(b));
//@ $has
const $has = (a, b) => (Array.isArray(a) ? a.some((v) => $same(v, b)) : $text(a).includes($text(b)));
//@ $blank
const $blank = (v) =>
  v === undefined ||
  v === null ||
  v === "" ||
  (typeof v === "object" && (Array.isArray(v) ? v.length === 0 : !(v instanceof Date) && Object.keys(v).length === 0));
//@ $fold
const $fold = (v) => (typeof v === "string" ? v.toLowerCase() : Array.isArray(v) ? v.map($fold) : v);
//@ $pattern
const $pattern = (v) => {
  const m = /^\/(.*)\/([a-z]*)$/s.exec($text(v));
  return m ? new RegExp(m[1], m[2].replace("g", "")) : new RegExp($text(v));
};
//@ $parsed
const $parsed = (v) => (typeof v === "string" ? JSON.parse(v) : v);
//@ $htmlTable
const $htmlTable = (items) => {
  const escape = (v) =>
    $text(v).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const names = [...new Set(items.flatMap((json) => Object.keys(json)))];
  const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${escape(cell)}</${tag}>`).join("")}</tr>`;
  return `<table><thead>${row(names, "th")}</thead><tbody>${items
    .map((json) =>
      row(
        names.map((name) => json[name]),
        "td",
      ),
    )
    .join("")}</tbody></table>`;
};
//@ $if
const $if = (condition, yes, no) => (condition ? yes : no);
//@ $ifEmpty
const $ifEmpty = (v, other) => ($blank(v) ? other : v);
//@ $max
const $max = (...all) => Math.max(...all.flat());
//@ $min
const $min = (...all) => Math.min(...all.flat());
//@ $writeRow
// Writes a row of a Google sheet that is found by columns, or adds one.
const $writeRow = async ({ document, sheet, keys, row, append, credential }) => {
  const base = `https://sheets.googleapis.com/v4/spreadsheets/${encodeURIComponent(document)}/values/`;
  const call = async (url, method, values) => {
    const answer = await fetch(base + url, {
      method,
      credential,
      ...(values && { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ values }) }),
    });
    if (!answer.ok) throw new Error(`Google Sheets answers ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
    return answer.json();
  };
  const range = (text) => encodeURIComponent(`'${sheet.replaceAll("'", "''")}'!${text}`);
  const [head = [], ...rows] = (await call(encodeURIComponent(sheet), "GET")).values ?? [];
  const at =
    keys[0] === "row_number"
      ? Number(row.row_number) - 2
      : rows.findIndex((cells) =>
          keys.every((key) => String(cells[head.indexOf(key)] ?? "") === String(row[key] ?? "")),
        );
  const cells = head.map((name, i) => (name in row ? row[name] : (rows[at]?.[i] ?? "")));
  if (at >= 0) await call(`${range(`A${at + 2}`)}?valueInputOption=USER_ENTERED`, "PUT", [cells]);
  else if (append)
    await call(
      `${encodeURIComponent(sheet)}:append?valueInputOption=USER_ENTERED&insertDataOption=INSERT_ROWS`,
      "POST",
      [cells],
    );
  return row;
};
//@ $feed
// The entries of an RSS or Atom feed.
const $feed = async (url) => {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`the feed answers ${answer.status}`);
  const text = await answer.text();
  const plain = (s) =>
    s
      ?.replace(/<!\[CDATA\[([\s\S]*?)\]\]>/g, "$1")
      .replace(/&lt;/g, "<")
      .replace(/&gt;/g, ">")
      .replace(/&quot;/g, '"')
      .replace(/&#39;|&apos;/g, "'")
      .replace(/&amp;/g, "&")
      .trim();
  return [...text.matchAll(/<(item|entry)[\s>][\s\S]*?<\/\1>/g)].map(([entry]) => {
    const tag = (...names) => {
      for (const name of names) {
        const m = new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`).exec(entry);
        if (m) return plain(m[1]);
      }
    };
    const date = tag("pubDate", "published", "updated", "dc:date"),
      content = tag("content:encoded", "content", "description", "summary");
    return {
      title: tag("title"),
      link: tag("link") || /<link[^>]*href="([^"]*)"/.exec(entry)?.[1],
      pubDate: date,
      isoDate: date && !Number.isNaN(Date.parse(date)) ? new Date(date).toISOString() : undefined,
      creator: tag("dc:creator", "author"),
      content,
      contentSnippet: content?.replace(/<[^>]*>/g, "").trim(),
      guid: tag("guid", "id"),
      categories: [...entry.matchAll(/<category(?:\s[^>]*)?>([\s\S]*?)<\/category>/g)].map((m) => plain(m[1])),
    };
  });
};
//@ $compared
// Two lists of items, compared where fields are equal.
const $compared = (one, two, fields, { resolve = "includeBoth", skip = [], multiple = false } = {}) => {
  const key = (json, side) => $key(fields.map((f) => $get(json, f[side]))),
    left = [...two];
  const out = { only_a: [], same: [], different: [], only_b: [] };
  for (const a of one) {
    const found = left.filter((b) => key(b, 1) === key(a, 0)).slice(0, multiple ? undefined : 1);
    if (found.length === 0) {
      out.only_a.push(a);
      continue;
    }
    for (const b of found) {
      left.splice(left.indexOf(b), 1);
      if ($key($without(a, skip)) === $key($without(b, skip))) {
        out.same.push(a);
        continue;
      }
      const names = [...new Set([...Object.keys(a), ...Object.keys(b)])],
        same = {},
        different = {},
        skipped = {};
      for (const name of names) {
        if ($key(a[name]) === $key(b[name])) same[name] = a[name];
        else (skip.includes(name) ? skipped : different)[name] = { inputA: a[name] ?? null, inputB: b[name] ?? null };
      }
      out.different.push(
        resolve === "preferInput1"
          ? a
          : resolve === "preferInput2"
            ? b
            : {
                keys: Object.fromEntries(fields.map(([name]) => [name, a[name]])),
                same,
                different,
                ...(Object.keys(skipped).length > 0 && { skipped }),
              },
      );
    }
  }
  out.only_b = left;
  return out;
};
//@ $typeform
// The answers of a form of Typeform, by their questions.
const $typeform = (body) => {
  const { definition, answers = [] } = body?.form_response ?? {};
  const titles = Object.fromEntries((definition?.fields ?? []).map((f) => [f.id, f.title]));
  return Object.fromEntries(
    answers.map((a) => {
      const v = a[a.type];
      return [
        titles[a.field?.id] ?? a.field?.ref ?? a.field?.id,
        v !== null && typeof v === "object" ? (v.label ?? v.labels ?? v.other ?? v) : v,
      ];
    }),
  );
};
//@ $mails
// New messages of Gmail, read one by one.
const $mails = async (items, credential) => {
  const out = [];
  for (const { id } of items.slice(0, 40)) {
    const answer = await fetch(
      `https://gmail.googleapis.com/gmail/v1/users/me/messages/${encodeURIComponent(id)}?format=metadata`,
      { credential },
    );
    if (!answer.ok) throw new Error(`Gmail answers ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
    const { payload, ...message } = await answer.json(),
      headers = Object.fromEntries((payload?.headers ?? []).map((h) => [h.name.toLowerCase(), h.value]));
    out.push({
      ...message,
      From: headers.from,
      To: headers.to,
      Cc: headers.cc,
      Subject: headers.subject,
      Date: headers.date,
    });
  }
  return out;
};
