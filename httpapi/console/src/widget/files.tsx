// Files in a visitor's conversation: those to send, and those of messages.
import { useEffect, useRef, useState } from "preact/hooks";

import { Shape } from "./shape";
import { words } from "./words";

export type FileLimits = { max: number; max_size: number; types: string[] };
/** A file of a message; local is what this browser is sending. */
export type SaidFileInfo = { name: string; mime_type: string; size: number; removed?: boolean; local?: File };

const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];

const sizeText = (bytes: number) =>
  bytes < 1 << 20 ? `${Math.max(1, Math.round(bytes / 1024))} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;

export const limitsText = (limits: FileLimits) => words.limits(limits.max, limits.max_size >> 20);

/** The chosen files with those added that may be sent, and why others may not. */
export function checkFiles(limits: FileLimits, chosen: File[], added: File[]) {
  const taken = [...chosen];
  let issue = "";
  for (const f of added) {
    if (!f.size || !limits.types.includes(f.name.split(".").pop()!.toLowerCase())) issue = words.wrongType(f.name);
    else if (f.size > limits.max_size || taken.length >= limits.max) issue = limitsText(limits);
    else taken.push(f);
  }
  return { taken, issue };
}

/** The files that the next message will have. */
export function FileChips({
  files,
  limits,
  issue,
  remove,
}: {
  files: File[];
  limits: FileLimits;
  issue: string;
  remove: (f: File) => void;
}) {
  return (
    <div class="sw-chosen">
      {files.length > 0 && (
        <ul>
          {files.map((f, i) => (
            <li key={`${i} ${f.name}`}>
              <bdi>{f.name}</bdi> <small>{sizeText(f.size)}</small>
              <button type="button" class="sw-icon" aria-label={words.remove(f.name)} onClick={() => remove(f)}>
                <Shape d="M18 6 6 18M6 6l12 12" />
              </button>
            </li>
          ))}
        </ul>
      )}
      {issue ? (
        <small class="sw-issue" role="alert">
          <bdi>{issue}</bdi>
        </small>
      ) : (
        <small>{limitsText(limits)}</small>
      )}
    </div>
  );
}

/** A file of a message: a picture is shown, and every file can be saved. */
export function SaidFile({ f, get }: { f: SaidFileInfo; get?: () => Promise<Blob> }) {
  const ref = useRef<HTMLDivElement>(null);
  const [address, setAddress] = useState("");
  const [busy, setBusy] = useState(false);
  const shown = pictures.includes(f.mime_type) && !f.removed;
  useEffect(() => {
    if (!shown || (!f.local && !get)) return;
    let gone = false,
      made = "";
    const show = (blob: Blob) => {
      if (!gone) setAddress((made = URL.createObjectURL(blob.slice(0, blob.size, f.mime_type))));
    };
    const view = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      view.disconnect();
      if (f.local) show(f.local);
      else get!().then(show, () => {});
    });
    view.observe(ref.current!);
    return () => {
      gone = true;
      view.disconnect();
      if (made) URL.revokeObjectURL(made);
    };
  }, [shown, Boolean(get)]);
  const save = async () => {
    setBusy(true);
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await get!());
      link.download = f.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch {
      /* it can be pressed again */
    }
    setBusy(false);
  };
  return (
    <div class="sw-file" ref={ref}>
      {shown && address && <img src={address} alt={f.name} onError={() => setAddress("")} />}
      {f.removed ? (
        <p>
          <bdi>{f.name}</bdi> <small>({words.notKept})</small>
        </p>
      ) : (
        <button type="button" disabled={!get || busy} onClick={save}>
          <Shape d="M12 3v12m-5-5 5 5 5-5M5 21h14" />
          <bdi>{f.name}</bdi> <small>{sizeText(f.size)}</small>
        </button>
      )}
    </div>
  );
}
