/** The client against a real server: `recallog serve`, whose program RECALLOG names. */

import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ConnectionFailed, Problem, Recallog } from "../src/index.js";

const PROGRAM = process.env["RECALLOG"] ?? "recallog";

let home: string;
let url: string;
let server: ChildProcess | undefined;

/** Start a server and wait for its address. */
async function start(port: number): Promise<void> {
  const started = spawn(PROGRAM, ["serve", "--port", String(port), "--home", home], { stdio: ["ignore", "pipe", "pipe"] });
  server = started;
  url = await new Promise((resolve, reject) => {
    let said = "";
    const hear = (data: Buffer): void => {
      said += data.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) resolve(found[0]);
    };
    started.stdout.on("data", hear);
    started.stderr.on("data", hear);
    started.once("exit", (code) => reject(new Error(`the server has ended with ${code}: ${said}`)));
  });
  for (;;) {
    const ready = await fetch(`${url}/readyz`).then((answer) => answer.ok, () => false);
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function kill(): Promise<void> {
  const dead = server;
  server = undefined;
  if (dead === undefined || dead.exitCode !== null) return;
  dead.removeAllListeners("exit");
  const ended = new Promise((resolve) => dead.once("exit", resolve));
  dead.kill("SIGKILL");
  await ended;
}

before(async () => {
  home = await mkdtemp(join(tmpdir(), "recallog-"));
  await start(0);
});

after(async () => {
  await kill();
  await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }); // the process of the index ends after the server
});

afterEach(async () => {
  if (server === undefined) await start(Number(new URL(url).port));
});

function client(options = {}): Recallog {
  return new Recallog(url, { waitMs: 20, ...options });
}

function spoke(text: string, id?: string) {
  return { agent: "baker", kind: "agent.spoke", payload: { text }, ...(id === undefined ? {} : { id }) };
}

test("the program of the page prints what the page says", async () => {
  const page = await readFile(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");
  const [program, printed] = [/```typescript\n(.*?)```/s, /```text\n(.*?)```/s].map((block) => block.exec(page)?.[1]);
  const file = join(home, "page.mjs");
  const client = new URL("../src/index.js", import.meta.url).href;
  await writeFile(file, program!.replace('"recallog"', `"${client}"`).replace("http://127.0.0.1:8765", url));
  assert.equal((await promisify(execFile)(process.execPath, [file])).stdout, printed);
});

test("what is published is remembered and recalled", async () => {
  const { positions } = await client().publish("recalled", spoke("The mill burned."));
  const seen = await client().episodic("recalled", "baker", { after: positions[0]! });
  assert.deepEqual(seen.memories.map((each) => each.text), ["The mill burned."]);
  const found = await client().recall("recalled", "baker", "What burned?");
  assert.equal(found.hits[0]?.text, "The mill burned.");
});

test("a request whose answer is lost is repeated and writes nothing twice", async () => {
  let lost = 0;
  const losing: typeof fetch = async (...request) => {
    const answer = await fetch(...request);
    if (lost++ === 0) throw new TypeError("the connection broke");
    return answer;
  };
  await client({ fetch: losing }).publish("once", [spoke("one"), spoke("two")]);
  const seen = await client().episodic("once", "baker");
  assert.deepEqual([lost, seen.memories.map((each) => each.text)], [2, ["one", "two"]]);
});

test("an item that is put once more after its answer was lost has one version", async () => {
  let lost = 0;
  const losing: typeof fetch = async (...request) => {
    const answer = await fetch(...request);
    if (lost++ === 0) throw new TypeError("the connection broke");
    return answer;
  };
  const item = await client({ fetch: losing }).putItem("items", "baker", ["notes"], "miller", "owes flour");
  assert.equal(item?.version, 1);
});

test("an error has the class of the server's error", async () => {
  await client().publish("errors", spoke("one", "e-1"));
  await assert.rejects(client().publish("errors", spoke("two", "e-1")), (error: unknown) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.title, error.status, error.retryable], ["IdConflict", 409, false]);
    return true;
  });
});

test("a change of an item that somebody else has changed is a conflict", async () => {
  await client().putItem("conflicts", "baker", ["notes"], "a", 1);
  await assert.rejects(client().putItem("conflicts", "baker", ["notes"], "a", 2, { base: 0 }), { message: /^Conflict/ });
});

test("a server that cannot be reached is an error of its own", async () => {
  const nowhere = new Recallog("http://127.0.0.1:9", { tries: 2, waitMs: 1 });
  await assert.rejects(nowhere.recall("s", "a", "?"), ConnectionFailed);
});

test("UI messages come back as they were added, and their tools are recalled", async () => {
  const messages = [
    { id: "u-1", role: "user", parts: [{ type: "text", text: "Weather?" }] },
    {
      id: "u-2",
      role: "assistant",
      parts: [
        { type: "tool-weather", toolCallId: "c-1", state: "output-available", input: { city: "Oslo" }, output: "a hailstorm" },
        { type: "text", text: "It hails." },
      ],
    },
  ];
  await client().addMessages("chat", "assistant", "monday", messages);
  assert.deepEqual((await client().messages("chat", "assistant", "monday")).messages, messages);
  const found = await client().recall("chat", "assistant", "hailstorm");
  assert.equal(found.hits[0]?.text, "weather(city=Oslo): a hailstorm");
});

test("a name with a slash is one name", async () => {
  await client().publish("acme/shop", spoke("Nine sacks."));
  assert.equal((await client().episodic("acme/shop", "baker")).memories.length, 1);
});

test("a stream goes on after the server was killed, without a gap and without a repetition", async () => {
  const { positions } = await client().publish("stream", spoke("0"));
  const following = client({ tries: 100 }).stream("stream", "baker", { start: positions[0]! });
  const texts: string[] = [];
  for await (const each of following) {
    if (each.type !== "event") continue;
    texts.push(each.data.text);
    if (texts.length === 2) {
      await kill();
      await start(Number(new URL(url).port));
      await client().publish("stream", [spoke("3"), spoke("4")]);
    }
    if (texts.length === 1) await client().publish("stream", [spoke("1"), spoke("2")]);
    if (texts.length === 5) break;
  }
  assert.deepEqual(texts, ["0", "1", "2", "3", "4"]);
});

test("a tail has the events of the space, and ends when it is aborted", async () => {
  const { positions } = await client().publish("tail", spoke("one", "t-1"));
  const abort = new AbortController();
  const ids: string[] = [];
  await assert.rejects(async () => {
    for await (const each of client().tail("tail", { start: positions[0]!, signal: abort.signal })) {
      if (each.type !== "event") continue;
      ids.push(each.data.id);
      abort.abort(new Error("enough"));
    }
  }, /enough|abort/);
  assert.deepEqual(ids, ["t-1"]);
});
