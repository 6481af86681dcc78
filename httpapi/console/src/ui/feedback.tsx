// What a page says while it waits, has nothing, or failed; and the list of toasts.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ApiError, limitedUntil, OfflineError } from "../data/api";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";
import { dismiss, toasts } from "./toast";

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
  const notFound = error instanceof ApiError && error.status === 404;
  if (error instanceof OfflineError) return <p class="muted">{error.message}</p>;
  return (
    <div class="card bad" role="alert">
      <p>{error.message}</p>
      {notFound && <p>It may have been deleted since, or its address is misspelled.</p>}
      {error instanceof ApiError && (
        <p class="muted small">{[error.code, error.requestId].filter(Boolean).join(" · ")}</p>
      )}
      {error instanceof ApiError && error.retryAfter > 0 ? (
        <Countdown until={limitedUntil.value} />
      ) : (
        ((retry && !notFound) || children) && (
          <div class="row">
            {retry && !notFound && <Button onClick={retry}>Try again</Button>}
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

/** The toasts that are shown. */
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
