// Where a value stands in JSON as it was typed, to point at what is wrong.

/** The range of a text that is JSON where the value of a path such as
 * nodes[2].data.url stands; of what is not there, that of what would hold it. */
export function locate(text, path) {
  const keys = path.split(/[.[\]]+/).filter(Boolean);
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  const space = () => take(/\s*/y);
  const string = () => take(/"(?:[^"\\]|\\.)*"/y);

  function skip() {
    const start = at;
    let open = 0;
    do {
      space();
      if (string()) continue;
      const sign = take(/[{}[\],:]|[^\s{}[\],:"]+/y);
      if (!sign) break;
      open += "{[".includes(sign) ? 1 : "}]".includes(sign) ? -1 : 0;
    } while (open > 0);
    return [start, at];
  }

  function find(depth) {
    space();
    const start = at;
    const opened = depth < keys.length ? take(/[{[]/y) : "";
    if (!opened) return skip();
    for (let i = 0; ; i++) {
      space();
      if (take(/[}\]]/y)) break;
      const key = opened === "[" ? String(i) : JSON.parse(string() || '""');
      space();
      take(/:/y);
      if (key === keys[depth]) return find(depth + 1);
      space();
      skip();
      space();
      if (!take(/,/y) && !/[}\]]/.test(text[at] ?? "}")) break;
      if (at >= text.length) break;
    }
    return [start, at];
  }
  return find(0);
}

/** Where a text stops being JSON, as the browser tells it; undefined where it does not. */
export function wrongAt(text, error) {
  const position = /position (\d+)/.exec(error.message);
  if (position) return Number(position[1]);
  const place = /line (\d+) column (\d+)/.exec(error.message);
  if (!place) return undefined;
  const lines = text.split("\n").slice(0, Number(place[1]) - 1);
  return lines.reduce((n, line) => n + line.length + 1, 0) + Number(place[2]) - 1;
}

/** Puts the cursor of a text area on a range and brings that into sight. */
export function point(area, [start, end]) {
  area.focus();
  area.setSelectionRange(start, end);
  const line = area.value.slice(0, start).split("\n").length - 1;
  area.scrollTop = Math.max(0, line * parseFloat(getComputedStyle(area).lineHeight) - area.clientHeight / 3);
}
