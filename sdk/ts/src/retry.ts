export interface RetryOptions {
  /** How often a request is sent at most; 5 without it. */
  tries?: number;
  /** The longest wait for the server, in seconds; 90 without it. */
  maxWait?: number;
  /** Sends requests; the global fetch without it. */
  fetch?: (request: Request) => Promise<Response>;
  /** Waits; for tests. */
  sleep?: (seconds: number) => Promise<void>;
}

const passing = [502, 503, 504];

/**
 * Returns a fetch that sends again what the server refused for its rate (429),
 * after Retry-After, and requests that only read also after failures that pass.
 */
export function retrying(options: RetryOptions): (request: Request) => Promise<Response> {
  const { tries = 5, maxWait = 90, sleep = (s: number) => new Promise<void>((done) => setTimeout(done, s * 1000)) } = options;
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
      const header = response?.headers.get("Retry-After") ?? "";
      const delay = /^\d+$/.test(header) ? Number(header) : Math.min(0.25 * 2 ** attempt, 8);
      if (response && delay > maxWait) return response;
      await response?.body?.cancel();
      await sleep(delay);
    }
  };
}
