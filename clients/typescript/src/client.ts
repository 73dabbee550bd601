import { ConnectionFailed, Problem, type ProblemBody, StreamEnded, problemOf } from "./errors.js";
import { eventsOf } from "./sse.js";
import type * as types from "./types.js";

export interface Options {
  /** A key of the server. */
  key?: string;
  /** How often a request is tried that failed for a while. Default: 4. */
  tries?: number;
  /** The wait before the second try, in milliseconds; it doubles. Default: 200. */
  waitMs?: number;
  /** How long a request may take, in milliseconds. Default: 70,000. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

export interface CallOptions {
  method?: "GET" | "POST";
  /** The arguments: in the query of a GET, else in the body. */
  arguments?: Record<string, unknown>;
  /** Whether a second try cannot do it twice. Default: of a GET. */
  repeatable?: boolean;
  signal?: AbortSignal;
}

interface StreamOptions {
  /** Where it begins. Default: now. */
  start?: types.Position;
  signal?: AbortSignal;
}

/**
 * A memory behind a server.
 *
 * Requests that fail for a while are tried again. None does anything twice: the client makes the ids of what it writes.
 */
export class Recallog {
  readonly #url: string;
  readonly #options: Required<Omit<Options, "key">>;
  readonly #headers: Record<string, string>;

  constructor(url = "http://127.0.0.1:8765", options: Options = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#options = {
      tries: options.tries ?? 4,
      waitMs: options.waitMs ?? 200,
      timeoutMs: options.timeoutMs ?? 70_000,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    };
    this.#headers = options.key === undefined ? {} : { authorization: `Bearer ${options.key}` };
  }

  /** Write one event, or several: all or none. */
  async publish(space: string, events: types.NewEvent | types.NewEvent[]): Promise<types.Published> {
    const named = (Array.isArray(events) ? events : [events]).map((each) => ({ ...each, id: each.id ?? newId() }));
    const answer = await this.#send(`/v1/spaces/${segment(space)}/events`, JSON.stringify(named), true);
    const { items } = answer as { items: { partition: number; offset: number }[] };
    return { positions: items.map((each) => `${each.partition}:${each.offset}`), ids: named.map((each) => each.id) };
  }

  /** The memories of an agent that best answer a question. */
  async recall(space: string, agent: string, query: string, options: types.RecallQuery = {}): Promise<types.RecallView> {
    return this.#ask(space, agent, "recall", { query, ...options });
  }

  /** The prompt of an agent: who it is, and what it remembers. */
  async context(space: string, agent: string, options: Record<string, unknown> = {}): Promise<{ text: string }> {
    return this.#ask(space, agent, "context", options);
  }

  /** The recent events of an agent. */
  async episodic(space: string, agent: string, at: types.At = {}): Promise<{ known: boolean; memories: types.Remembered[] }> {
    return this.agent(space, agent, "episodic", { arguments: { ...at } });
  }

  /** Add messages to a conversation, each in the form in which it is. What it has already is not added again. */
  async addMessages(
    space: string,
    agent: string,
    session: string,
    messages: types.Message[],
    options: { turn?: number; subject?: string } = {},
  ): Promise<types.MessagesAdded> {
    return this.#ask(space, agent, "conversation/add", { session, messages, ...options });
  }

  /** The messages of a conversation, as they were added. */
  async messages(space: string, agent: string, session: string, at: types.At = {}): Promise<types.ConversationView> {
    return this.agent(space, agent, "conversation/messages", { arguments: { session, ...at } });
  }

  /** The item under a key. */
  async getItem(space: string, agent: string, namespace: string[], key: string): Promise<types.Item | null> {
    const found = await this.agent<{ item: types.Item | null }>(space, agent, "items/get", {
      arguments: { namespace: namespace.join("/"), key },
    });
    return found.item;
  }

  /** Give an item a value; with `base` only if it has this version. */
  async putItem(
    space: string,
    agent: string,
    namespace: string[],
    key: string,
    value: unknown,
    options: { base?: number | string; event_id?: string } = {},
  ): Promise<types.Item | null> {
    const answer = await this.#ask<{ item: types.Item | null }>(space, agent, "items/put", {
      namespace,
      key,
      value,
      event_id: newId(),
      ...options,
    });
    return answer.item;
  }

  /** Any operation about an agent: its name as in the reference, with dashes and slashes. */
  async agent<Answer>(space: string, agent: string, operation: string, options: CallOptions = {}): Promise<Answer> {
    return this.call(`/v1/spaces/${segment(space)}/agents/${segment(agent)}/${operation}`, options);
  }

  /** Any route of the server. */
  async call<Answer>(path: string, options: CallOptions = {}): Promise<Answer> {
    const method = options.method ?? "GET";
    const given = Object.entries(options.arguments ?? {}).filter(([, value]) => value !== undefined && value !== null);
    if (method === "POST") {
      const body = JSON.stringify(Object.fromEntries(given));
      return (await this.#send(path, body, options.repeatable ?? false, options.signal)) as Answer;
    }
    const query = new URLSearchParams(given.flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)])));
    return (await this.#send(query.size > 0 ? `${path}?${query}` : path, undefined, true, options.signal)) as Answer;
  }

  /** What an agent may see, as it comes. It goes on where it was when the connection breaks. */
  stream(space: string, agent: string, options: StreamOptions = {}): AsyncGenerator<types.StreamEvent<types.Remembered>> {
    return this.#follow(`/v1/spaces/${segment(space)}/agents/${segment(agent)}/stream`, options);
  }

  /** The events of a space, as the ledger has them. */
  tail(space: string, options: StreamOptions = {}): AsyncGenerator<types.StreamEvent<types.Event>> {
    return this.#follow(`/v1/spaces/${segment(space)}/events`, options);
  }

  async #ask<Answer>(space: string, agent: string, operation: string, given: Record<string, unknown>): Promise<Answer> {
    return this.agent(space, agent, operation, { method: "POST", arguments: given, repeatable: true });
  }

  async #send(path: string, body: string | undefined, repeatable: boolean, signal?: AbortSignal): Promise<unknown> {
    for (let tried = 1; ; tried++) {
      try {
        const response = await this.#fetch(path, body, {}, signal, this.#options.timeoutMs);
        if (response.ok) return await response.json();
        throw await problemOf(response);
      } catch (error) {
        const failure = failureOf(error, signal);
        const temporary = failure instanceof Problem ? failure.retryable : failure instanceof ConnectionFailed;
        // Too many requests: the server has done nothing.
        const refused = failure instanceof Problem && failure.status === 429;
        if (!temporary || !(repeatable || refused) || tried >= this.#options.tries) throw failure;
        await this.#pause(tried, failure, signal);
      }
    }
  }

  async *#follow<Data>(path: string, options: StreamOptions): AsyncGenerator<types.StreamEvent<Data>> {
    const { signal } = options;
    let start = options.start;
    let last: string | undefined;
    for (let tried = 1; ; tried++) {
      let failure: unknown;
      try {
        const query = last === undefined && start !== undefined ? `?start=${encodeURIComponent(start)}` : "";
        const resuming: Record<string, string> = last === undefined ? {} : { "last-event-id": last };
        const response = await this.#fetch(path + query, undefined, { accept: "text/event-stream", ...resuming }, signal);
        if (!response.ok) throw await problemOf(response);
        for await (const { event, data, id } of eventsOf(response.body as ReadableStream<Uint8Array>)) {
          tried = 0;
          const value = JSON.parse(data) as Record<string, unknown>;
          if (event === "end") throw ended(value);
          if (event === "begin") {
            start = value["start"] as string;
            if (last === undefined) yield { type: "begin", start };
          } else if (event === "gap") {
            yield { type: "gap", kept_from: value["kept_from"] as string };
          } else if (id !== undefined && id !== last) {
            last = id;
            yield { type: "event", position: id, data: value as Data };
          }
        }
      } catch (error) {
        failure = failureOf(error, signal);
        if (failure instanceof StreamEnded && failure.reason !== "slow" && failure.reason !== "stopping") throw failure;
        if (failure instanceof Problem && !failure.retryable) throw failure;
        if (!(failure instanceof Problem || failure instanceof StreamEnded || failure instanceof ConnectionFailed)) throw failure;
        if (tried >= this.#options.tries) throw failure;
      }
      await this.#pause(Math.max(tried, 1), failure, signal);
    }
  }

  async #fetch(
    path: string,
    body: string | undefined,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
    timeoutMs?: number,
  ): Promise<Response> {
    const signals = [...(signal ? [signal] : []), ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)])];
    return this.#options.fetch(this.#url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { ...this.#headers, ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body }),
      ...(signals.length > 0 ? { signal: AbortSignal.any(signals) } : {}),
    });
  }

  async #pause(tried: number, failure: unknown, signal: AbortSignal | undefined): Promise<void> {
    const backoff = this.#options.waitMs * 2 ** (tried - 1) * (0.5 + Math.random() / 2);
    const asked = failure instanceof Problem ? (failure.retryAfter ?? 0) * 1000 : 0;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, Math.max(backoff, asked));
      signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
    });
  }
}

function newId(): string {
  return globalThis.crypto.randomUUID();
}

/** A name as one segment of a path. */
function segment(name: string): string {
  return encodeURIComponent(name);
}

function ended(value: Record<string, unknown>): StreamEnded {
  return new StreamEnded(String(value["reason"]), value["problem"] as ProblemBody | undefined);
}

/** An error of `fetch` as one of ours; what the caller has aborted stays what it is. */
function failureOf(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted || error instanceof Problem || error instanceof StreamEnded) return error;
  const isOfFetch = error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
  return isOfFetch ? new ConnectionFailed(String(error), { cause: error }) : error;
}
