// Reads streams of server-sent events over a WebSocket: browsers open only six connections of HTTP/1.1 to a host, so
// that the streams of as many windows would keep all other requests waiting. Where no WebSocket opens, as behind some
// proxies, the stream is a response.

/** An event of a stream; what its data are depends on its name. */
export type ServerEvent<T = unknown> = { event: string; id: string; data: T };

type Each<T> = (e: ServerEvent<T>) => void;

const openWithin = 5000;

/** Returns a function that takes the pieces of a stream. */
function parser<T>(each: Each<T>) {
  let text = "";
  return (piece: string) => {
    const blocks = (text + piece).split("\n\n");
    text = blocks.pop()!;
    for (const block of blocks) {
      const of = (name: string) => new RegExp(`^${name}: (.*)`, "m").exec(block)?.[1];
      const data = of("data"); // one line, as the server writes JSON
      if (data) each({ event: of("event") ?? "message", id: of("id") ?? "", data: JSON.parse(data) });
    }
  };
}

/** Reads the events of a response until they end. */
export async function readEvents<T>(response: Response, each: Each<T>) {
  const take = parser(each);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) take(part.value);
}

/** Reads the events at an address over a WebSocket until they end; resolves to false if it does not open. */
export const readSocket = <T>(
  address: URL,
  { token, after, signal, opened }: { token: string; after?: string; signal?: AbortSignal; opened?: () => void },
  each: Each<T>,
) =>
  new Promise<boolean>((resolve, reject) => {
    let open = false;
    address.protocol = address.protocol.replace("http", "ws");
    // Pages cannot set headers of WebSockets, but protocols.
    const protocols = [token && `bearer.${token}`, after && `after.${after}`, "events"].filter(Boolean);
    const socket = new WebSocket(
      address,
      protocols.map((p) => `satchel.${p}`),
    );
    const close = () => socket.close();
    const timer = setTimeout(close, openWithin);
    const take = parser(each);
    socket.onopen = () => {
      clearTimeout(timer);
      open = true;
      opened?.();
    };
    socket.onmessage = ({ data }) => take(data);
    socket.onclose = () => (signal?.aborted ? reject(signal.reason) : resolve(open));
    signal?.addEventListener("abort", close);
  });
