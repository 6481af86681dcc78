// The files of a message: pictures and recordings are shown, the rest is downloaded.
import { useEffect, useRef, useState } from "preact/hooks";

import { type API, asError, download, path, request } from "../../data";
import { Button, Icon, size } from "../../ui";

type File = { name?: string; type?: string; mime_type?: string; size?: number; status?: string; error?: string };

const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];
const recordings = ["audio/mpeg", "audio/ogg", "audio/wav", "audio/mp4", "audio/webm"];

/** The files of a message. */
export function Attachments({ id, m }: { id: string; m: API.MessageDetails }) {
  const files: File[] = Array.isArray(m.metadata?.attachments) ? m.metadata.attachments : [];
  if (files.length === 0) return null;
  return (
    <ul class="inbox-files">
      {files.map((f, i) => (
        <li key={i}>
          <Attachment f={f} at={path("agents", id, "messages", String(m.id), "attachments", String(i))} />
        </li>
      ))}
    </ul>
  );
}

/** Returns the state of a file that is not stored. */
function stateOf({ status, error }: File): string {
  if (status === "pending") return error ? `not there yet: ${error}` : "downloading…";
  if (status === "failed") return `not downloaded: ${error}`;
  return status === "removed" ? "no longer kept" : "";
}

function Attachment({ f, at }: { f: File; at: string }) {
  const name = f.name || f.type || f.mime_type || "file";
  if (f.status !== "stored") {
    const state = stateOf(f);
    return (
      <p class={`small ${f.status === "failed" ? "bad" : "muted"}`}>
        <Icon name="Paperclip" size={14} /> <bdi>{name}</bdi>
        {state && (
          <>
            {" "}
            · <bdi>{state}</bdi>
          </>
        )}
      </p>
    );
  }
  const shown = pictures.includes(f.mime_type ?? "") || recordings.includes(f.mime_type ?? "");
  return (
    <>
      {shown && <Media f={f} name={name} at={at} />}
      <Button kind="quiet" icon="Download" onClick={() => download("GET", at)}>
        <bdi>{name}</bdi>
        {f.size ? <span class="muted small"> {size(f.size)}</span> : null}
      </Button>
    </>
  );
}

/** Fetches a picture or a recording once it is in view. */
function Media({ f, name, at }: { f: File; name: string; at: string }) {
  const ref = useRef<HTMLDivElement>(null);
  const [address, setAddress] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let unmounted = false;
    let objectURL = "";
    const view = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      view.disconnect();
      request("GET", at)
        .then((r) => r.blob())
        .then(
          (blob) => {
            if (unmounted) return;
            objectURL = URL.createObjectURL(blob.slice(0, blob.size, f.mime_type));
            setAddress(objectURL);
          },
          (e) => {
            if (!unmounted) setProblem(asError(e).message);
          },
        );
    });
    view.observe(ref.current!);
    return () => {
      unmounted = true;
      view.disconnect();
      if (objectURL) URL.revokeObjectURL(objectURL);
    };
  }, [at, f.mime_type]);
  const broken = () => setProblem("This file cannot be shown.");
  return (
    <div ref={ref} class="inbox-media">
      {problem ? (
        <p class="small muted">{problem}</p>
      ) : pictures.includes(f.mime_type ?? "") ? (
        address ? (
          <a href={address} target="_blank" rel="noopener">
            <img src={address} alt={name} onError={broken} />
          </a>
        ) : (
          <span class="inbox-waiting" />
        )
      ) : (
        <audio controls src={address || undefined} aria-label={name} onError={() => address && broken()} />
      )}
    </div>
  );
}
