/** A position in the ledger: `partition:offset`. */
export type Position = string;

export interface At {
  /** The answer has the event at this position. */
  after?: Position;
  /** What the memory answered at this position, or what had happened at this time. */
  as_of?: Position | string;
}

export interface NewEvent {
  kind: string;
  payload: Record<string, unknown>;
  /** The client makes one where it is missing, so that a repetition writes nothing twice. */
  id?: string;
  /** Not needed with a key, which names the agent. */
  agent?: string;
  session?: string;
  turn?: number;
  audience?: string[];
  subject?: string;
  at?: string;
}

export interface Event extends NewEvent {
  id: string;
  space: string;
  agent: string;
  at: string;
}

export interface Published {
  positions: Position[];
  /** The ids of the events, also of those that the client has made. */
  ids: string[];
}

export interface Remembered {
  event: Event;
  position: Position;
  text: string;
}

export interface RecallHit extends Remembered {
  score: number;
  similarity: number | null;
  weak: boolean;
  source: "index" | "views";
}

export interface RecallView {
  query: string;
  known: boolean;
  hits: RecallHit[];
  degraded: string | null;
  left_out: number;
}

export interface RecallQuery extends At {
  top_k?: number;
  types?: string[];
  author?: string;
  wait_index?: boolean;
  [option: string]: unknown;
}

/** A message of chat completions or of Anthropic, a UI message of the AI SDK, or an item of the Responses API. */
export type Message = Record<string, unknown>;

export interface MessagesAdded {
  added: number;
  known: number;
  ids: string[];
}

export interface ConversationView {
  messages: Message[];
  ids: string[];
  compacted: number;
}

export interface Item {
  namespace: string[];
  key: string;
  value: unknown;
  version: number;
  sha256: string;
  at: string;
}

/** What a stream sends. */
export type StreamEvent<Data> =
  | { type: "begin"; start: Position }
  | { type: "event"; position: Position; data: Data }
  | { type: "gap"; kept_from: Position };
