/** An event that a webhook delivers. */
export interface WebhookEvent {
  type: string;
  timestamp: string;
  id: string;
  agent_id: string;
  data: Record<string, unknown>;
}

/** A delivery that is not genuine. */
export class WebhookError extends Error {}

const tolerance = 300; // seconds

/**
 * Verifies a delivery by Standard Webhooks and returns its event. `body` is the
 * raw body, unparsed, as text or bytes; `secret` begins with whsec_. Throws WebhookError.
 */
export async function verifyWebhook(
  secret: string,
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array,
  now = Date.now() / 1000,
): Promise<WebhookEvent> {
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? "";
  };
  const id = header("webhook-id"),
    at = header("webhook-timestamp");
  if (!/^\d+$/.test(at) || Math.abs(now - Number(at)) > tolerance)
    throw new WebhookError("the timestamp is missing or too far from now");
  const encode = new TextEncoder();
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const raw = Uint8Array.from(atob(secret.replace(/^whsec_/, "")), (c) => c.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  for (const given of header("webhook-signature").split(" ")) {
    if (!given.startsWith("v1,")) continue;
    let signature: Uint8Array<ArrayBuffer>;
    try {
      signature = Uint8Array.from(atob(given.slice(3)), (c) => c.charCodeAt(0));
    } catch {
      continue;
    }
    if (await crypto.subtle.verify("HMAC", key, signature, encode.encode(`${id}.${at}.${text}`)))
      return JSON.parse(text) as WebhookEvent;
  }
  throw new WebhookError("no signature matches");
}
