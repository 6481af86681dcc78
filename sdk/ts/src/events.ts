/** One server-sent event. */
export interface ServerEvent {
  event: string;
  data: string;
  id: string;
}

/** Yields the server-sent events of a response; leaving the loop ends it. */
export async function* events(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>)
    .getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parse(block: string): ServerEvent | undefined {
  const event: ServerEvent = { event: "message", data: "", id: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event.event = value;
    else if (name === "id") event.id = value;
    else if (name === "data") data.push(value);
  }
  event.data = data.join("\n");
  return data.length > 0 ? event : undefined;
}
