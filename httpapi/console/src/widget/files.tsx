// Files in a visitor's conversation: those to send, and those of messages.
import { useEffect, useRef, useState } from "preact/hooks";

import { Shape } from "./shape";
import { words } from "./words";

/** How many files a message can have, how large each can be, and their extensions. */
export type FileLimits = { max: number; max_size: number; types: string[] };

/** A file of a message; local is what this browser is sending. */
export type MessageFileInfo = { name: string; mime_type: string; size: number; removed?: boolean; local?: File };

const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];

const sizeText = (bytes: number) =>
  bytes < 1 << 20 ? `${Math.max(1, Math.round(bytes / 1024))} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;

/** The limits in words. */
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
export function MessageFile({ file, get }: { file: MessageFileInfo; get?: () => Promise<Blob> }) {
  const ref = useRef<HTMLDivElement>(null);
  const [address, setAddress] = useState("");
  const [busy, setBusy] = useState(false);
  const shown = pictures.includes(file.mime_type) && !file.removed;
  useEffect(() => {
    if (!shown || (!file.local && !get)) return;
    let unmounted = false;
    let url = "";
    const show = (blob: Blob) => {
      if (unmounted) return;
      url = URL.createObjectURL(blob.slice(0, blob.size, file.mime_type));
      setAddress(url);
    };
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      observer.disconnect();
      if (file.local) show(file.local);
      else get!().then(show, () => {});
    });
    observer.observe(ref.current!);
    return () => {
      unmounted = true;
      observer.disconnect();
      if (url) URL.revokeObjectURL(url);
    };
  }, [shown, Boolean(get)]);
  const save = async () => {
    setBusy(true);
    try {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await get!());
      link.download = file.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch {
      /* it can be pressed again */
    }
    setBusy(false);
  };
  return (
    <div class="sw-file" ref={ref}>
      {shown && address && <img src={address} alt={file.name} onError={() => setAddress("")} />}
      {file.removed ? (
        <p>
          <bdi>{file.name}</bdi> <small>({words.notKept})</small>
        </p>
      ) : (
        <button type="button" disabled={!get || busy} onClick={save}>
          <Shape d="M12 3v12m-5-5 5 5 5-5M5 21h14" />
          <bdi>{file.name}</bdi> <small>{sizeText(file.size)}</small>
        </button>
      )}
    </div>
  );
}
