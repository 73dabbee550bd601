/** A client of a Recallog server. It needs `fetch`, as browsers, Node, Deno, Bun and workers have it, and nothing else. */

export { Recallog, type Options, type CallOptions } from "./client.js";
export { ConnectionFailed, Problem, StreamEnded } from "./errors.js";
export type * from "./types.js";
