// Code that people read and take along.
import { CopyButton } from "../ui";

/** Code as it was written, which scrolls within itself, with a button that copies it. */
export function CodeBlock({ text }: { text: string }) {
  return (
    <div class="code-block">
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} />
    </div>
  );
}
