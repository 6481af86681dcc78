// What a page says while it waits, has nothing, or failed; and passing notices.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ApiError, limitedUntil, OfflineError } from "../data/api";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";

/**
 * Grey lines in the place of what is coming; nothing for the first 150 ms. In the place of a page it has a title for
 * screen readers.
 */
export function Skeleton({ lines = 4, title }: { lines?: number; title?: string }) {
  return (
    <>
      {title && (
        <h1 class="hidden" tabIndex={-1}>
          {title}
        </h1>
      )}
      <div class="skeleton" role="status" aria-label="Loading">
        {Array.from({ length: lines }, (_, i) => (
          <i style={{ width: `${90 - ((i * 17) % 40)}%` }} />
        ))}
      </div>
    </>
  );
}

/** A page or a list without content: a sentence and what to do about it. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon?: IconName;
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      {icon && <Icon name={icon} size={28} />}
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action && <div class="row center">{action}</div>}
    </div>
  );
}

/** An error in the place of what could not be shown, with what can be done besides trying again. */
export function ErrorCard({
  error,
  retry,
  children,
}: {
  error: Error;
  retry?: () => void;
  children?: ComponentChildren;
}) {
  const gone = error instanceof ApiError && error.status === 404;
  if (error instanceof OfflineError) return <p class="muted">{error.message}</p>;
  return (
    <div class="card bad" role="alert">
      <p>{error.message}</p>
      {gone && <p>It may have been deleted since, or its address is misspelled.</p>}
      {error instanceof ApiError && (
        <p class="muted small">{[error.code, error.requestId].filter(Boolean).join(" · ")}</p>
      )}
      {error instanceof ApiError && error.retryAfter > 0 ? (
        <Countdown until={limitedUntil.value} />
      ) : (
        ((retry && !gone) || children) && (
          <div class="row">
            {retry && !gone && <Button onClick={retry}>Try again</Button>}
            {children}
          </div>
        )
      )}
    </div>
  );
}

/** Says in how many seconds the service takes calls again. */
export function Countdown({ until }: { until: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.ceil((until - now) / 1000);
  return <p class="muted">{left > 0 ? `Retrying in ${left} s` : "Retrying…"}</p>;
}

type Toast = { id: number; text: string; error?: Error; undo?: () => void; topic?: string };

const toasts = signal<Toast[]>([]);
let nextToast = 1;

/** Shows a passing notice: a text or an error. It replaces the one that is shown of the same topic. */
export function tell(said: unknown, undo?: () => void, topic?: string) {
  const what = typeof said === "string" || said instanceof Error ? said : new Error(String(said));
  if (what instanceof Error && what.name === "AbortError") return;
  if (what instanceof OfflineError) return; // the banner above the page says it
  const id = nextToast++;
  toasts.value = [
    ...toasts.value.filter((t) => !topic || t.topic !== topic).slice(-4),
    {
      id,
      text: what instanceof Error ? what.message : what,
      error: what instanceof Error ? what : undefined,
      undo,
      topic,
    },
  ];
  setTimeout(() => dismiss(id), undo ? 8000 : what instanceof Error ? 12_000 : 4000);
}

const dismiss = (id: number) => {
  toasts.value = toasts.value.filter((t) => t.id !== id);
};

/** Deletes after 8 seconds in which it can be undone; leaving the page deletes at once. */
export function deleteLater(text: string, run: () => Promise<unknown>, restore: () => void) {
  let done = false;
  const finish = () => {
    if (done) return;
    done = true;
    removeEventListener("pagehide", finish);
    run().catch((error) => {
      restore();
      tell(error);
    });
  };
  const timer = setTimeout(finish, 8000);
  addEventListener("pagehide", finish);
  tell(text, () => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    removeEventListener("pagehide", finish);
    restore();
  });
}

/** The messages that tell shows. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((t) => (
        <div key={t.id} class={t.error ? "toast bad" : "toast"}>
          <div class="grow">
            <p>{t.text}</p>
            {t.error instanceof ApiError && (
              <p class="small muted">{[t.error.code, t.error.requestId].filter(Boolean).join(" · ")}</p>
            )}
          </div>
          {t.undo && (
            <Button
              onClick={() => {
                t.undo!();
                dismiss(t.id);
              }}
            >
              Undo
            </Button>
          )}
          <Button kind="quiet" icon="X" label="Close" onClick={() => dismiss(t.id)} />
        </div>
      ))}
    </div>
  );
}
