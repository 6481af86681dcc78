// Choosing files.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { Button, Icon, type IconName } from "../ui";

type FileButtonProps = {
  /** The label of the field, which only its button shows. */
  field: string;
  icon: IconName;
  kind?: "primary" | "quiet";
  /** The label of a button without a text. */
  label?: string;
  choose: (files: File[]) => void;
  children?: ComponentChildren;
};

/** A button that lets the person choose files. */
export function FileButton({ field, choose, children, ...button }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={field}
        onChange={(e) => {
          const files = [...(e.currentTarget.files ?? [])];
          e.currentTarget.value = "";
          if (files.length) choose(files);
        }}
      />
      <Button {...button} onClick={() => input.current?.click()}>
        {children}
      </Button>
    </>
  );
}

type FileDropProps = {
  /** The label of the field. */
  field: string;
  accept: string;
  choose: (file: File | undefined) => void;
  children: ComponentChildren;
};

/** An area onto which a file is dropped, with a field to choose one. */
export function FileDrop({ field, accept, choose, children }: FileDropProps) {
  return (
    <label
      class="drop"
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        e.preventDefault();
        choose(e.dataTransfer?.files[0]);
      }}
    >
      <Icon name="Upload" size={28} />
      {children}
      <input type="file" accept={accept} aria-label={field} onChange={(e) => choose(e.currentTarget.files?.[0])} />
    </label>
  );
}
