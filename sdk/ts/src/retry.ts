export interface RetryOptions {
  /** The maximum number of attempts of a request; 5 by default. */
  tries?: number;
  /** The longest wait for the server, in seconds; 90 by default. */
  maxWait?: number;
  /** Sends requests; the global fetch by default. */
  fetch?: (request: Request) => Promise<Response>;
  /** Waits, until the signal aborts; for tests. */
  sleep?: (seconds: number, signal?: AbortSignal) => Promise<void>;
}

const passing = [502, 503, 504];

/** Waits, and rejects when the signal aborts. */
export function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const stop = (): void => {
      clearTimeout(timer);
      fail(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      done();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Returns the seconds of a Retry-After header, which has them or a date. */
function retryAfter(header: string): number | undefined {
  if (/^\d+$/.test(header)) return Number(header);
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max((at - Date.now()) / 1000, 0);
}

/**
 * Returns a fetch that repeats requests that the server refused for their rate (429),
 * after Retry-After, and read-only requests also after temporary failures.
 */
export function retrying(options: RetryOptions): (request: Request) => Promise<Response> {
  const { tries = 5, maxWait = 90, sleep = pause } = options;
  const send = options.fetch ?? ((request: Request) => fetch(request));
  return async (request) => {
    const reads = request.method === "GET";
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= tries;
      let response: Response | undefined;
      try {
        response = await send(last ? request : request.clone());
        if (last || !(response.status === 429 || (reads && passing.includes(response.status)))) return response;
      } catch (error) {
        if (last || !reads || request.signal.aborted) throw error;
      }
      const delay = retryAfter(response?.headers.get("Retry-After") ?? "") ?? Math.min(0.25 * 2 ** attempt, 8);
      if (response && delay > maxWait) return response;
      await response?.body?.cancel();
      await sleep(delay, request.signal);
    }
  };
}
