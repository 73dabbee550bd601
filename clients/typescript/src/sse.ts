export interface ServerSentEvent {
  event: string;
  data: string;
  /** The last id that the stream has named. */
  id: string | undefined;
}

/** The events of a body in the format of `text/event-stream`. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  let next: { event: string; data: string[]; id: string | undefined } = { event: "message", data: [], id: undefined };
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (next.data.length > 0) yield { event: next.event, data: next.data.join("\n"), id: next.id };
          next = { event: "message", data: [], id: next.id };
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") next.data.push(text);
        else if (field === "event") next.event = text;
        else if (field === "id") next.id = text;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
