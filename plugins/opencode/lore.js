// Lore's hooks for opencode: they give memory to its sessions, and follow its task list.
// 'lore setup opencode' writes this file, 'lore setup opencode --undo' removes it.

import { spawn, spawnSync } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = ["lore"]
const DATA = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const DATABASE = join(DATA, "opencode", "opencode.db")

const TASK_LIST = "todowrite"
const SHELL = "bash"

// A hook of Lore ends by itself within 200 ms, at the start of a session within 1.5 s.
const LIMIT_MS = 5_000

export const LorePlugin = async ({ directory }) => {
  const sessions = new Map() // of this process, the latest used last: its parent, and its next start
  let parts = 0

  const describe = (event, fields) =>
    JSON.stringify({
      hook_event_name: event,
      cwd: directory,
      transcript_path: DATABASE,
      agent_transcript_path: DATABASE,
      ...fields,
    })

  const wordsOf = (event) => [...COMMAND.slice(1), "hook", event]

  // Returns the text that Lore adds, or an empty one: memory never stops an agent.
  const call = (event, fields) =>
    new Promise((resolve) => {
      const chunks = []
      const read = () => {
        try {
          const answer = JSON.parse(Buffer.concat(chunks).toString())
          resolve(answer.hookSpecificOutput?.additionalContext ?? "")
        } catch {
          resolve("")
        }
      }
      try {
        const options = { stdio: ["pipe", "pipe", "ignore"], timeout: LIMIT_MS, cwd: directory }
        const hook = spawn(COMMAND[0], wordsOf(event), options)
        hook.on("error", () => resolve(""))
        hook.on("close", read)
        hook.stdin.on("error", () => {})
        hook.stdout.on("data", (chunk) => chunks.push(chunk))
        hook.stdin.end(describe(event, fields))
      } catch {
        resolve("")
      }
    })

  const nameOf = (id) => {
    const parent = sessions.get(id)?.parent
    return parent ? { session_id: parent, agent_id: id } : { session_id: id }
  }

  const sessionOf = (id) => {
    const session = sessions.get(id) ?? { parent: "", source: "resume", isUsed: false }
    sessions.delete(id)
    sessions.set(id, session)
    return session
  }

  const textOf = (found) =>
    found
      .filter((part) => part.type === "text" && !part.synthetic)
      .map((part) => part.text)
      .join("\n")

  const give = async (id, prompt) => {
    const session = sessionOf(id)
    const source = session.source
    session.source = ""
    session.isUsed = true
    if (session.parent) return source ? [await call("SubagentStart", { ...nameOf(id), prompt })] : []
    const start = source ? await call("SessionStart", { ...nameOf(id), source }) : ""
    return [start, await call("UserPromptSubmit", { ...nameOf(id), prompt })]
  }

  return {
    event: async ({ event }) => {
      const { sessionID: id, info } = event.properties ?? {}
      if (event.type === "session.created" && info?.id) {
        const isUsed = sessions.get(info.id)?.isUsed ?? false
        sessions.set(info.id, { parent: info.parentID ?? "", source: "startup", isUsed })
      } else if (event.type === "session.deleted" && sessions.has(info?.id)) {
        const name = nameOf(info.id)
        const { parent, isUsed } = sessions.get(info.id)
        sessions.delete(info.id)
        if (isUsed && !parent) await call("SessionEnd", name)
      } else if (event.type === "session.compacted" && sessions.has(id)) {
        sessionOf(id).source = sessionOf(id).parent ? "" : "compact"
      } else if (event.type === "session.idle" && sessions.has(id)) {
        await call(sessionOf(id).parent ? "SubagentStop" : "Stop", nameOf(id))
      }
    },

    "chat.message": async ({ sessionID: id }, output) => {
      const texts = (await give(id, textOf(output.parts))).filter(Boolean)
      if (!texts.length) return
      parts += 1
      output.parts.push({
        id: `prt_lore${Date.now().toString(36)}${parts.toString(36).padStart(4, "0")}`,
        sessionID: id,
        messageID: output.message.id,
        type: "text",
        text: texts.join("\n"),
        synthetic: true,
      })
    },

    "tool.execute.after": async ({ tool, sessionID: id, args }, output) => {
      const failed = tool === SHELL && Boolean(output.metadata?.exit)
      if (tool !== TASK_LIST && !failed) return
      const text = await call("PostToolUse", {
        ...nameOf(id),
        tool_name: tool,
        tool_input: args,
        ...(failed ? { error: String(output.output) } : { tool_response: String(output.output) }),
      })
      if (text) output.output += `\n\n${text}`
    },

    "experimental.session.compacting": async ({ sessionID: id }) => {
      await call("PreCompact", nameOf(id))
    },

    // It waits, because opencode ends: a process that was just started would get no input.
    // All sessions share one limit, the latest used first; a session without a prompt has nothing to end.
    dispose: async () => {
      const end = Date.now() + LIMIT_MS
      for (const [id, { parent, isUsed }] of [...sessions].reverse()) {
        if (parent || !isUsed) continue
        const timeout = end - Date.now()
        if (timeout <= 0) break
        const options = { stdio: ["pipe", "ignore", "ignore"], timeout, cwd: directory }
        const input = describe("SessionEnd", nameOf(id))
        spawnSync(COMMAND[0], wordsOf("SessionEnd"), { ...options, input })
      }
      sessions.clear()
    },
  }
}
