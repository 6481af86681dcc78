//@ $unescaped
const $unescaped = (s) =>
  s.replace(/&(#x?[0-9a-f]+|[a-z]+\d?);/gi, (m, name) => {
    if (name[0] === "#") {
      const n = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
      return n > 0 && n < 0x110000 ? String.fromCodePoint(n) : m;
    }
    return (
      {
        amp: "&",
        lt: "<",
        gt: ">",
        quot: '"',
        apos: "'",
        nbsp: "\u00a0",
        copy: "©",
        reg: "®",
        hellip: "…",
        mdash: "—",
        ndash: "–",
        lsquo: "‘",
        rsquo: "’",
        ldquo: "“",
        rdquo: "”",
        bull: "•",
        euro: "€",
        laquo: "«",
        raquo: "»",
        middot: "·",
        trade: "™",
        times: "×",
        deg: "°",
        auml: "ä",
        ouml: "ö",
        uuml: "ü",
        Auml: "Ä",
        Ouml: "Ö",
        Uuml: "Ü",
        szlig: "ß",
        eacute: "é",
        egrave: "è",
        agrave: "à",
        ccedil: "ç",
        ntilde: "ñ",
      }[name] ?? m
    );
  });
//@ $tree
// The elements of HTML or XML: {tag, attributes, children, parent}; a text is a
// string, and in XML {cdata}.
const $tree = (source, xml = false) => {
  const root = { tag: "", attributes: {}, children: [], parent: null },
    empty = /^(area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)$/;
  const closes = {
    li: /^li$/,
    p: /^p$/,
    tr: /^(tr|td|th)$/,
    td: /^(td|th)$/,
    th: /^(td|th)$/,
    option: /^option$/,
    dd: /^(dd|dt)$/,
    dt: /^(dd|dt)$/,
  };
  const pattern =
    /<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<[!?][^>]*>|<\/([^\s>]+)[^>]*>|<([A-Za-z_][^\s/>]*)((?:\s+[^\s=/>]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+))?|\s*\/(?!>))*)\s*(\/?)>/g;
  let at = root,
    last = 0,
    m;
  const add = (text) => {
    if (text !== "") at.children.push($unescaped(text));
  };
  while ((m = pattern.exec(source))) {
    add(source.slice(last, m.index));
    last = pattern.lastIndex;
    const [all, cdata, close, open, rest, self] = m;
    if (cdata !== undefined && all.startsWith("<![CDATA[")) at.children.push(xml ? cdata : $unescaped(cdata));
    else if (close) {
      const tag = xml ? close : close.toLowerCase();
      let found = at;
      while (found && found.tag !== tag) found = found.parent;
      if (xml && found !== at) throw new Error(`Unexpected close tag: ${close}`);
      if (found && found.parent) at = found.parent;
    } else if (open) {
      const tag = xml ? open : open.toLowerCase(),
        attributes = {};
      for (const [, name, a, b, c] of rest.matchAll(/([^\s=/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?/g))
        attributes[xml ? name : name.toLowerCase()] = $unescaped(a ?? b ?? c ?? "");
      if (!xml && closes[tag]?.test(at.tag))
        at = tag === "tr" && at.tag !== "tr" ? (at.parent.parent ?? at.parent) : at.parent;
      const element = { tag, attributes, children: [], parent: at };
      at.children.push(element);
      if (self || (!xml && empty.test(tag))) continue;
      if (!xml && /^(script|style|textarea|title)$/.test(tag)) {
        const end = source.slice(last).search(new RegExp(`</${tag}[\\s>]`, "i")),
          stop = end < 0 ? source.length : last + end;
        if (stop > last)
          element.children.push(
            tag === "script" || tag === "style" ? source.slice(last, stop) : $unescaped(source.slice(last, stop)),
          );
        pattern.lastIndex = last = stop;
      }
      at = element;
    }
  }
  if (xml && at !== root) throw new Error(`Unclosed root tag: ${at.tag}`);
  add(source.slice(last));
  return root;
};
//@ $inner
// The text of an element, or its HTML.
const $inner = (e) => (typeof e === "string" ? e : e.children.map($inner).join(""));
//@ $html
const $html = (e) =>
  e.children
    .map((c) => {
      if (typeof c === "string")
        return /^(script|style)$/.test(e.tag)
          ? c
          : c.replace(/[&<>\u00a0]/g, (x) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;" })[x]);
      const attributes = Object.entries(c.attributes)
        .map(([name, v]) => ` ${name}="${v.replace(/[&"]/g, (x) => ({ "&": "&amp;", '"': "&quot;" })[x])}"`)
        .join("");
      return /^(area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)$/.test(c.tag)
        ? `<${c.tag}${attributes}>`
        : `<${c.tag}${attributes}>${$html(c)}</${c.tag}>`;
    })
    .join("");
//@ $find
// The elements that a CSS selector selects, in their order.
const $find = (root, selector) => {
  const elements = [];
  const walk = (e) => {
    for (const c of e.children)
      if (typeof c !== "string") {
        elements.push(c);
        walk(c);
      }
  };
  walk(root);
  const siblings = (e) => e.parent.children.filter((c) => typeof c !== "string");
  const nth = (text, n) => {
    const m = /^(?:(odd|even)|([+-]?\d*)n\s*([+-]\s*\d+)?|(\d+))$/.exec(text.trim());
    if (!m) throw new Error(`the selector :nth-child(${text}) is not supported`);
    if (m[4]) return n === Number(m[4]);
    const step = m[1] ? 2 : m[2] === "" || m[2] === "+" ? 1 : m[2] === "-" ? -1 : Number(m[2]),
      offset = m[1] ? (m[1] === "odd" ? 1 : 0) : Number((m[3] ?? "0").replace(/\s/g, ""));
    return step === 0 ? n === offset : (n - offset) % step === 0 && (n - offset) / step >= 0;
  };
  const pseudo = (e, name, argument) => {
    const all = siblings(e),
      same = all.filter((c) => c.tag === e.tag);
    switch (name) {
      case "first-child":
        return all[0] === e;
      case "last-child":
        return all.at(-1) === e;
      case "only-child":
        return all.length === 1;
      case "first-of-type":
        return same[0] === e;
      case "last-of-type":
        return same.at(-1) === e;
      case "nth-child":
        return nth(argument, all.indexOf(e) + 1);
      case "nth-last-child":
        return nth(argument, all.length - all.indexOf(e));
      case "nth-of-type":
        return nth(argument, same.indexOf(e) + 1);
      case "empty":
        return e.children.length === 0;
      case "contains":
        return $inner(e).includes(argument.replace(/^["']|["']$/g, ""));
      case "not":
        return !groups(argument).some((steps) => matches(e, steps));
      case "is":
      case "where":
        return groups(argument).some((steps) => matches(e, steps));
      case "has":
        return $find({ children: e.children }, argument).length > 0;
    }
    throw new Error(`the selector :${name} is not supported`);
  };
  const compare = {
    "=": (a, b) => a === b,
    "~=": (a, b) => a.split(/\s+/).includes(b),
    "|=": (a, b) => a === b || a.startsWith(b + "-"),
    "^=": (a, b) => b !== "" && a.startsWith(b),
    "$=": (a, b) => b !== "" && a.endsWith(b),
    "*=": (a, b) => b !== "" && a.includes(b),
  };
  // A group is a list of {combinator, tests}, the last one first.
  const groups = (text) => {
    const all = [[]];
    let rest = text.trim(),
      combinator = "";
    while (rest !== "") {
      const next = /^\s*([>+~,])\s*|^\s+/.exec(rest);
      if (next && next[0] !== "") {
        rest = rest.slice(next[0].length);
        if (next[1] === ",") {
          all.push([]);
          combinator = "";
        } else combinator = next[1] ?? " ";
        continue;
      }
      const tests = [];
      let m;
      while (
        (m =
          /^(?:([\w\u00a0-\uffff-]+|\*)|#((?:\\.|[\w\u00a0-\uffff-])+)|\.((?:\\.|[\w\u00a0-\uffff-])+)|\[\s*([\w:-]+)\s*(?:([~|^$*]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\]\s]+))\s*i?)?\s*\]|::?([a-z-]+)(?:\(((?:[^()]|\([^()]*\))*)\))?)/i.exec(
            rest,
          ))
      ) {
        const [whole, tag, id, name, attribute, how, a, b, c, kind, argument] = m;
        if (tag !== undefined && tests.length > 0) break;
        rest = rest.slice(whole.length);
        const v = a ?? b ?? c,
          plain = (s) => s.replace(/\\(.)/g, "$1");
        tests.push(
          tag !== undefined
            ? (e) => tag === "*" || e.tag === tag.toLowerCase()
            : id !== undefined
              ? (e) => e.attributes.id === plain(id)
              : name !== undefined
                ? (e) => (e.attributes.class ?? "").split(/\s+/).includes(plain(name))
                : attribute !== undefined
                  ? (e) => {
                      const has = e.attributes[attribute.toLowerCase()];
                      return has !== undefined && (how === undefined || compare[how](has, v));
                    }
                  : (e) => pseudo(e, kind.toLowerCase(), argument ?? ""),
        );
      }
      if (tests.length === 0) throw new Error(`the selector ${text} is not supported`);
      all.at(-1).unshift({ combinator, tests });
      combinator = " ";
    }
    return all.filter((steps) => steps.length > 0);
  };
  const matches = (e, [{ combinator, tests }, ...before]) => {
    if (!e || e.tag === "" || !tests.every((test) => test(e))) return false;
    if (before.length === 0) return true;
    if (combinator === ">") return matches(e.parent, before);
    if (combinator === "+" || combinator === "~") {
      const all = siblings(e),
        earlier = all.slice(0, all.indexOf(e)).reverse();
      return (combinator === "+" ? earlier.slice(0, 1) : earlier).some((c) => matches(c, before));
    }
    for (let up = e.parent; up; up = up.parent) if (matches(up, before)) return true;
    return false;
  };
  const wanted = groups(selector);
  return elements.filter((e) => wanted.some((steps) => matches(e, steps)));
};
//@ $extracted
// The values that selectors find in HTML.
const $extracted = (source, values, { trim = true, clean = false } = {}) => {
  const root = $tree(source),
    out = {};
  const read = (all, v) => {
    const [e] = all;
    let s =
      {
        attribute: () => e?.attributes[v.attribute],
        html: () => e && $html(e),
        value: () => e?.attributes.value ?? (e?.tag === "textarea" ? $inner(e) : undefined),
      }[v.returnValue]?.() ??
      (["attribute", "html", "value"].includes(v.returnValue) ? undefined : all.map($inner).join(""));
    if (s === undefined || (v.returnValue !== "value" && s === "" && v.returnValue !== "attribute")) return undefined;
    if (trim) s = s.trim();
    if (clean)
      s = s
        .replace(/^\s+|\s+$/g, "")
        .replace(/\r\n|\n|\r/g, "")
        .replace(/\s+/g, " ");
    return s;
  };
  for (const v of values) {
    const all = $find(root, v.cssSelector);
    for (const skip of String(v.skipSelectors ?? "")
      .split(",")
      .map((s) => s.trim())
      .filter(Boolean))
      for (const e of all)
        for (const x of $find({ children: e.children }, skip))
          x.parent.children = x.parent.children.filter((c) => c !== x);
    out[v.key] = v.returnArray ? all.map((e) => read([e], v)) : read(all, v);
  }
  return out;
};
//@ $htmlToMarkdown
const $htmlToMarkdown = (source) => {
  const inline = (e) =>
    e.children
      .map((c) => {
        if (typeof c === "string") return c.replace(/\s+/g, " ");
        const text = inline(c);
        switch (c.tag) {
          case "b":
          case "strong":
            return text.trim() ? `**${text.trim()}**` : "";
          case "i":
          case "em":
            return text.trim() ? `_${text.trim()}_` : "";
          case "s":
          case "del":
          case "strike":
            return text.trim() ? `~~${text.trim()}~~` : "";
          case "code":
            return "`" + $inner(c) + "`";
          case "br":
            return "  \n";
          case "a":
            return c.attributes.href
              ? text.trim() === c.attributes.href
                ? `<${c.attributes.href}>`
                : `[${text.trim()}](${c.attributes.href})`
              : text;
          case "img":
            return c.attributes.src ? `![${c.attributes.alt ?? ""}](${c.attributes.src})` : "";
          case "script":
          case "style":
          case "head":
          case "noscript":
            return "";
        }
        return isBlock(c) ? `\n\n${block(c, "").trim()}\n\n` : text;
      })
      .join("");
  const isBlock = (c) =>
    typeof c !== "string" &&
    /^(address|article|aside|blockquote|body|details|div|dl|dd|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|html|li|main|nav|ol|p|pre|section|table|ul)$/.test(
      c.tag,
    );
  const flow = (e, indent) => {
    const parts = [];
    let run = { children: [] };
    const flush = () => {
      const text = inline(run)
        .replace(/^ +| +$/g, "")
        .replace(/ +\n(?! )/g, "\n");
      if (text.trim()) parts.push(text.trim());
      run = { children: [] };
    };
    for (const c of e.children) {
      if (isBlock(c)) {
        flush();
        const text = block(c, indent);
        if (text.trim()) parts.push(text);
      } else run.children.push(c);
    }
    flush();
    return parts.join("\n\n");
  };
  const list = (e, indent) => {
    let n = Number(e.attributes.start ?? 1);
    return e.children
      .filter((c) => typeof c !== "string" && c.tag === "li")
      .map((li) => {
        const mark = e.tag === "ol" ? `${n++}. ` : "* ";
        return (
          mark +
          flow(li, indent)
            .replace(/\n\n(?=( *)(\*|\d+\.) )/g, "\n")
            .replace(/\n(?=.)/g, "\n" + " ".repeat(e.tag === "ol" ? 3 : 2))
        );
      })
      .join("\n");
  };
  const table = (e) => {
    const rows = $find(e, "tr").map((tr) =>
      tr.children
        .filter((c) => c.tag === "td" || c.tag === "th")
        .map((c) =>
          inline(c)
            .trim()
            .replace(/\s*\n\s*/g, " ")
            .replaceAll("|", "\\|"),
        ),
    );
    const [head = [], ...rest] = rows.filter((row) => row.length > 0);
    const width = Math.max(0, ...rows.map((row) => row.length)),
      line = (row) => `| ${Array.from({ length: width }, (_, i) => row[i] ?? "").join(" | ")} |`;
    return width ? [line(head), `|${" --- |".repeat(width)}`, ...rest.map(line)].join("\n") : "";
  };
  const block = (e, indent) => {
    switch (e.tag) {
      case "h1":
      case "h2":
      case "h3":
      case "h4":
      case "h5":
      case "h6": {
        const text = inline(e).trim();
        return text ? "#".repeat(Number(e.tag[1])) + " " + text : "";
      }
      case "hr":
        return "---";
      case "pre": {
        const code = $find(e, "code")[0];
        return (
          "```" +
          (/language-(\S+)/.exec(code?.attributes.class ?? "")?.[1] ?? "") +
          "\n" +
          $inner(code ?? e).replace(/\n$/, "") +
          "\n```"
        );
      }
      case "blockquote":
        return flow(e, indent)
          .split("\n")
          .map((line) => ("> " + line).trimEnd())
          .join("\n");
      case "ul":
      case "ol":
        return list(e, indent);
      case "table":
        return table(e);
    }
    return flow(e, indent);
  };
  return flow($tree(source), "")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
};
//@ $markdownToHtml
const $markdownToHtml = (source, { tables = false, breaks = false, ids = true, strike = false } = {}) => {
  const escape = (s) =>
    s
      .replace(/&(?![a-z]+;|#\d+;)/gi, "&amp;")
      .replace(/</g, "&lt;")
      .replace(/>/g, "&gt;");
  const span = (text) => {
    const kept = [],
      keep = (html) => `\u0000${kept.push(html) - 1}\u0000`;
    let s = text
      .replace(/(`+)([\s\S]*?[^`])\1(?!`)/g, (_, __, code) => keep(`<code>${escape(code.trim())}</code>`))
      .replace(/\\([\\`*_{}[\]()#+.!~|>-])/g, (_, c) => keep(c))
      .replace(/<(https?:\/\/[^>\s]+)>/g, (_, url) => keep(`<a href="${url}">${url}</a>`))
      .replace(/<\/?[a-z][^<>]*>/gi, (tag) => keep(tag));
    const target = (m) => m.replaceAll('"', "&quot;");
    s = s.replace(/!\[([^\]]*)\]\(\s*<?([^\s)>]+)>?(?:\s+["']([^"']*)["'])?\s*\)/g, (_, alt, url, title) =>
      keep(`<img src="${target(url)}" alt="${target(alt)}"${title ? ` title="${target(title)}"` : ""} />`),
    );
    s = s.replace(
      /\[([^\]]+)\]\(\s*<?([^\s)>]*)>?(?:\s+["']([^"']*)["'])?\s*\)/g,
      (_, label, url, title) =>
        keep(`<a href="${target(url)}"${title ? ` title="${target(title)}"` : ""}>`) + label + keep("</a>"),
    );
    s = s.replace(/&(?![a-z]+;|#\d+;)/gi, "&amp;").replace(/</g, "&lt;");
    s = s
      .replace(/(\*\*\*|___)(?=\S)([\s\S]*?\S)\1/g, "<strong><em>$2</em></strong>")
      .replace(/(\*\*|__)(?=\S)([\s\S]*?\S[*_]*)\1/g, "<strong>$2</strong>")
      .replace(/(\*|_)(?=\S)([\s\S]*?\S)\1/g, "<em>$2</em>");
    if (strike) s = s.replace(/~~(?=\S)([\s\S]*?\S)~~/g, "<del>$1</del>");
    s = s.replace(/ {2,}\n/g, "<br />\n");
    if (breaks) s = s.replace(/(?<!<br \/>)\n/g, "<br />\n");
    while (/\u0000\d+\u0000/.test(s)) s = s.replace(/\u0000(\d+)\u0000/g, (_, i) => kept[i]);
    return s;
  };
  const isItem = (line) => /^ {0,3}([*+-]|\d+\.)\s+\S/.test(line ?? "");
  const blocks = (lines, tight) => {
    const out = [];
    for (let i = 0; i < lines.length;) {
      const line = lines[i];
      let m;
      if (!line.trim()) {
        i++;
        continue;
      }
      if ((m = /^(`{3,}|~{3,})\s*(\S*)/.exec(line))) {
        let end = i + 1;
        while (end < lines.length && !lines[end].startsWith(m[1])) end++;
        out.push(
          `<pre><code${m[2] ? ` class="${m[2]} language-${m[2]}"` : ""}>${escape(lines.slice(i + 1, end).join("\n"))}\n</code></pre>`,
        );
        i = end + 1;
      } else if ((m = /^(#{1,6})\s*(.+?)\s*#*\s*$/.exec(line))) {
        const n = m[1].length,
          id = m[2].replace(/[^\w]/g, "").toLowerCase();
        out.push(`<h${n}${ids ? ` id="${id}"` : ""}>${span(m[2])}</h${n}>`);
        i++;
      } else if (/^ {0,3}([-*_])( ?\1){2,}\s*$/.test(line)) {
        out.push("<hr />");
        i++;
      } else if (/^ {0,3}>/.test(line)) {
        const inner = [];
        while (i < lines.length && lines[i].trim()) inner.push(lines[i++].replace(/^ {0,3}> ?/, ""));
        out.push(`<blockquote>\n  ${blocks(inner).join("\n  ")}\n</blockquote>`);
      } else if (/^( {4}|\t)/.test(line)) {
        const inner = [];
        while (i < lines.length && (/^( {4}|\t)/.test(lines[i]) || !lines[i].trim()))
          inner.push(lines[i++].replace(/^( {4}|\t)/, ""));
        out.push(`<pre><code>${escape(inner.join("\n").trimEnd())}\n</code></pre>`);
      } else if (isItem(line)) {
        const ordered = /^ {0,3}\d/.test(line),
          items = [];
        let loose = false;
        while (
          i < lines.length &&
          (isItem(lines[i])
            ? /^ {0,3}\d/.test(lines[i]) === ordered
            : /^\s+\S/.test(lines[i]) ||
              (!lines[i].trim() &&
                ((isItem(lines[i + 1]) && /^ {0,3}\d/.test(lines[i + 1]) === ordered) ||
                  /^ {4}\S/.test(lines[i + 1] ?? ""))))
        ) {
          if (isItem(lines[i])) items.push([lines[i].replace(/^ {0,3}([*+-]|\d+\.)\s+/, "")]);
          else {
            if (!lines[i].trim()) loose = true;
            items.at(-1).push(lines[i].replace(/^( {4}|\t| {1,3})/, ""));
          }
          i++;
        }
        const tag = ordered ? "ol" : "ul";
        out.push(
          `<${tag}>\n${items.map((item) => `<li>${blocks(item, !loose).join("\n")}</li>`).join("\n")}\n</${tag}>`,
        );
      } else if (tables && line.includes("|") && /^ {0,3}\|?[\s:-]*-[\s|:-]*$/.test(lines[i + 1] ?? "")) {
        const cells = (row) =>
          row
            .trim()
            .replace(/^\||\|$/g, "")
            .split("|")
            .map((cell) => span(cell.trim()));
        const head = cells(line),
          rows = [];
        for (i += 2; i < lines.length && lines[i].includes("|"); i++) rows.push(cells(lines[i]));
        out.push(
          `<table>\n<thead>\n<tr>\n${head.map((cell) => `<th>${cell}</th>`).join("\n")}\n</tr>\n</thead>\n<tbody>\n${rows.map((row) => `<tr>\n${row.map((cell) => `<td>${cell}</td>`).join("\n")}\n</tr>`).join("\n")}\n</tbody>\n</table>`,
        );
      } else {
        const inner = [];
        while (
          i < lines.length &&
          lines[i].trim() &&
          !(inner.length > 0 && (/^(#{1,6}\s|`{3}|~{3}| {0,3}>)/.test(lines[i]) || (tight && isItem(lines[i]))))
        )
          inner.push(lines[i++]);
        const under = inner.length > 1 && /^(=+|-+)\s*$/.exec(inner.at(-1));
        const text = span((under ? inner.slice(0, -1) : inner).join("\n").trim());
        out.push(
          under
            ? `<h${under[0][0] === "=" ? 1 : 2}${ids ? ` id="${inner[0].replace(/[^\w]/g, "").toLowerCase()}"` : ""}>${text}</h${under[0][0] === "=" ? 1 : 2}>`
            : /^<\/?(address|article|aside|blockquote|body|details|div|dl|fieldset|figure|footer|form|h[1-6]|head|header|hr|html|iframe|main|nav|ol|p|pre|section|style|script|table|ul)\b/i.test(
                  inner[0],
                )
              ? inner.join("\n")
              : tight
                ? text
                : `<p>${text}</p>`,
        );
      }
    }
    return out;
  };
  return blocks(
    String(source ?? "")
      .replace(/\r\n?/g, "\n")
      .split("\n"),
  ).join("\n");
};
//@ $fromXML
// XML as an object: attributes are fields, and what occurs several times is a
// list.
const $fromXML = (
  source,
  {
    explicitArray = false,
    mergeAttrs = true,
    ignoreAttrs = false,
    explicitRoot = true,
    trim = false,
    normalize = false,
    normalizeTags = false,
    attrkey = "$",
    charkey = "_",
  } = {},
) => {
  const put = (object, name, v) => {
    object[name] = name in object ? [object[name], v].flat() : explicitArray ? [v] : v;
  };
  const name = (e) => (normalizeTags ? e.tag.toLowerCase() : e.tag);
  const value = (e) => {
    const object = {},
      entries = ignoreAttrs ? [] : Object.entries(e.attributes);
    if (entries.length > 0 && !mergeAttrs) object[attrkey] = Object.fromEntries(entries);
    else for (const [key, v] of entries) put(object, key, v);
    let text = e.children.filter((c) => typeof c === "string").join("");
    const blank = !text.trim();
    if (trim) text = text.trim();
    if (normalize) text = text.replace(/\s+/g, " ").trim();
    for (const c of e.children) if (typeof c !== "string") put(object, name(c), value(c));
    if (Object.keys(object).length === 0) return blank ? "" : text;
    if (!blank) object[charkey] = text;
    return object;
  };
  const root = $tree(String(source).trim(), true).children.find((c) => typeof c !== "string");
  if (!root) throw new Error("the XML has no element");
  return explicitRoot ? { [name(root)]: value(root) } : value(root);
};
//@ $toXML
const $toXML = (json, { rootName = "root", attrkey = "$", charkey = "_", headless = false, cdata = false } = {}) => {
  const escape = (v) =>
    cdata && /[&<>]/.test(v)
      ? `<![CDATA[${v}]]>`
      : v.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\r/g, "&#xD;");
  const keys = Object.keys(json),
    single = keys.length === 1 && rootName === "root" && !Array.isArray(json[keys[0]]);
  const element = (name, v, indent) => {
    if (Array.isArray(v)) return v.map((one) => element(name, one, indent)).join("\n");
    if (v === null || typeof v !== "object")
      return v === null || v === undefined || v === ""
        ? `${indent}<${name}/>`
        : `${indent}<${name}>${escape(String(v))}</${name}>`;
    const attributes = Object.entries(v[attrkey] ?? {})
      .map(([key, a]) => ` ${key}="${String(a).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;")}"`)
      .join("");
    const inner = Object.entries(v)
      .filter(([key]) => key !== attrkey)
      .map(([key, c]) => (key === charkey ? `${indent}  ${escape(String(c))}` : element(key, c, indent + "  ")))
      .filter((c) => c !== "");
    if (charkey in v && inner.length === 1)
      return `${indent}<${name}${attributes}>${escape(String(v[charkey]))}</${name}>`;
    return inner.length > 0
      ? `${indent}<${name}${attributes}>\n${inner.join("\n")}\n${indent}</${name}>`
      : `${indent}<${name}${attributes}/>`;
  };
  return (
    (headless ? "" : '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n') +
    (single ? element(keys[0], json[keys[0]], "") : element(rootName, json, ""))
  );
};
