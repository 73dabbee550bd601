// Recallog remembers what is said in OpenCode. `recallog install opencode` wrote this file (recallog-hook), and
// `recallog uninstall opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = COMMAND_OF_THE_HOOK
const WAIT_MS = 2000

// Runs the hook with an event. It answers within a second; whatever goes wrong, OpenCode goes on.
function run(event) {
  return new Promise((resolve) => {
    let output = ""
    const done = () => {
      try {
        resolve(JSON.parse(output))
      } catch {
        resolve({})
      }
    }
    try {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => child.kill(), WAIT_MS)
      child.on("error", () => resolve({}))
      child.on("close", () => (clearTimeout(timer), done()))
      child.stdout.on("data", (data) => (output += data))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      resolve({})
    }
  })
}

export const Recallog = async ({ directory }) => {
  const recalled = new Map() // what the memory recalls, by session, until the next prompt
  const started = new Map()
  const roles = new Map()
  const hook = (name, session, more) => run({ hook_event_name: name, session_id: session, cwd: directory, ...more })

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      const parts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = parts.map((part) => part.text).join("\n")
      const first = started.has(session) ? {} : await hook("session.created", session, { source: "startup" })
      started.set(session, true)
      const { context } = await hook("chat.message", session, { prompt, message_id: output.message?.id })
      recalled.set(session, [first.context, context].filter(Boolean))
    },
    "experimental.chat.system.transform": async (input, output) => {
      output.system.push(...(recalled.get(input.sessionID) ?? []))
    },
    "tool.execute.after": async (input, output) => {
      await hook("tool.execute.after", input.sessionID, {
        tool_name: input.tool,
        tool_use_id: input.callID,
        tool_input: input.args ?? {},
        tool_response: output.output ?? "",
      })
    },
    "experimental.session.compacting": async (input) => {
      await hook("session.compacting", input.sessionID, {})
    },
    event: async ({ event }) => {
      const { info, part, sessionID } = event.properties ?? {}
      if (event.type === "message.updated" && info) roles.set(info.id, info.role)
      if (event.type === "message.part.updated" && part?.type === "text" && part.time?.end) {
        if (roles.get(part.messageID) !== "assistant") return
        await hook("text.complete", part.sessionID, { text: part.text, message_id: part.id })
      }
      if (event.type === "session.idle") await hook("session.idle", sessionID, {})
      if (event.type === "session.deleted") await hook("session.deleted", info?.id ?? sessionID, {})
    },
  }
}
