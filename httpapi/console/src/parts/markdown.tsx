// Renders Markdown. Raw HTML is shown as text, images become links, and links lead to http(s) and
// mailto only, so no text can become markup.
import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren, ComponentType } from "preact";
import { useMemo, useRef } from "preact/hooks";

/** Renders the text between marks, such as with links to citations. */
export type InlineText = (text: string) => ComponentChildren;
type CodeType = ComponentType<{ text: string }>;

const safe = (href: string) => {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href, location.href).protocol);
  } catch {
    return false;
  }
};

function Link({ href, children }: { href: string; children: ComponentChildren }) {
  return safe(href) && !href.startsWith("#") ? (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ) : (
    <>{children}</>
  );
}

const decode = (text: string) =>
  text.replace(
    /&(amp|lt|gt|quot|#39);/g,
    (_, name) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[name as "amp"]!,
  );

function inline(tokens: Token[] | undefined, text: InlineText): ComponentChildren {
  return tokens?.map((token) => {
    const t = token as MarkedToken; // there are no others without extensions
    switch (t.type) {
      case "strong":
        return <strong>{inline(t.tokens, text)}</strong>;
      case "em":
        return <em>{inline(t.tokens, text)}</em>;
      case "del":
        return <del>{inline(t.tokens, text)}</del>;
      case "codespan":
        return <code>{decode(t.text)}</code>;
      case "br":
        return <br />;
      case "link":
        return <Link href={t.href}>{inline(t.tokens, text)}</Link>;
      case "image":
        return <Link href={t.href}>{t.text || t.href}</Link>;
      case "escape":
        return t.text;
      case "checkbox":
        return t.checked ? "☑ " : "☐ ";
      case "text":
        return "tokens" in t && t.tokens ? inline(t.tokens, text) : text(decode(t.text));
      default:
        return t.raw;
    }
  });
}

function block(token: Token, text: InlineText, Code?: CodeType): ComponentChildren {
  const t = token as MarkedToken;
  switch (t.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      const Tag = `h${Math.min(6, t.depth + 2)}` as "h3";
      return <Tag>{inline(t.tokens, text)}</Tag>;
    }
    case "paragraph":
      return <p>{inline(t.tokens, text)}</p>;
    case "text":
      return <p>{"tokens" in t && t.tokens ? inline(t.tokens, text) : text(decode(t.text))}</p>;
    case "code":
      return Code ? (
        <Code text={t.text} />
      ) : (
        <pre>
          <code>{t.text}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{t.tokens.map((x) => block(x, text, Code))}</blockquote>;
    case "list": {
      const Tag = (t.ordered ? "ol" : "ul") as "ol";
      return (
        <Tag start={t.ordered && t.start !== 1 ? Number(t.start) : undefined}>
          {t.items.map((item) => (
            <li class={item.task ? "task" : undefined}>
              {item.tokens.map((x) =>
                x.type === "text"
                  ? inline((x as Tokens.Text).tokens ?? [x], text)
                  : x.type === "checkbox"
                    ? inline([x], text)
                    : block(x, text, Code),
              )}
            </li>
          ))}
        </Tag>
      );
    }
    case "table":
      return (
        <div class="table-frame" tabIndex={0}>
          <table class="table plain-table">
            <thead>
              <tr>
                {t.header.map((c) => (
                  <th>{inline(c.tokens, text)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {t.rows.map((row) => (
                <tr>
                  {row.map((c) => (
                    <td>{inline(c.tokens, text)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    default:
      return <p>{t.raw}</p>;
  }
}

/** Renders Markdown. While it grows, only its last block is made again.
 * inlineText may replace parts of the plain text, such as citations; Code shows blocks of code. */
export function Markdown({
  text,
  inlineText = (t) => t,
  Code,
}: {
  text: string;
  inlineText?: InlineText;
  Code?: CodeType;
}) {
  const kept = useRef(new Map<string, ComponentChildren>());
  const tokens = useMemo(() => [...lexer(text, { gfm: true })], [text]);
  const made = new Map<string, ComponentChildren>();
  const blocks = tokens.map((t, i) => {
    const key = `${i}:${t.raw}`;
    const node = kept.current.get(key) ?? block(t, inlineText, Code);
    made.set(key, node);
    return node;
  });
  kept.current = made;
  return <div class="markdown">{blocks}</div>;
}
