/** One message: text in full, tool calls and reasoning folded. */
import { useEffect, useRef } from "react";
import type { Api } from "../api";
import { formatShort } from "../format";
import { plainLine } from "../markup";
import { Icon } from "./Icon";
import { Markup } from "./Markup";

type Message = Api<"Message">;
type Part = Api<"Part">;

const NAMES: Record<string, string> = {
  user: "Person",
  assistant: "Assistant",
  tool: "Tool",
  system: "System",
};

export function MessageView({ message, isTarget }: { message: Message; isTarget: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isTarget) place.current?.scrollIntoView({ block: "center" });
  }, [isTarget]);
  const isFolded = message.parts.every((part) => part.kind !== "text");
  return (
    <div
      ref={place}
      id={`message-${message.id}`}
      className="message"
      data-role={message.role}
      data-target={isTarget || undefined}
      data-folded={isFolded || undefined}
    >
      {!isFolded && (
        <p className="message-who">
          {message.speaker || NAMES[message.role]}
          {message.origin !== "user" && message.origin !== "assistant" && message.role === "user" && (
            <span className="tag">from {message.origin}</span>
          )}
        </p>
      )}
      {message.parts.map((part, at) => (
        <PartView key={at} part={part} open={isTarget && message.parts.length === 1} />
      ))}
    </div>
  );
}

function PartView({ part, open }: { part: Part; open: boolean }) {
  if (part.kind === "text") return <Markup text={part.text} />;
  if (part.kind === "image" || part.kind === "document")
    return (
      <p className="quiet small">
        [{part.kind}
        {part.name ? `: ${part.name}` : ""}]
      </p>
    );
  const label =
    {
      tool_call: part.name || "tool",
      tool_result: part.failed ? "failed" : "result",
      reasoning: "reasoning",
      aside: "aside",
    }[part.kind as string] ?? part.kind;
  return (
    <details className="fold" open={open} data-failed={part.failed || undefined}>
      <summary>
        <Icon name={part.kind === "tool_call" ? "tool" : part.kind === "reasoning" ? "spark" : "right"} />
        <span className="fold-name">{label}</span>
        <span className="fold-line">{foldLine(part)}</span>
        <span className="row-end" title="Tokens, about">
          {formatShort(Math.ceil(part.text.length / 4))}
        </span>
      </summary>
      {part.kind === "reasoning" ? (
        <Markup text={part.text} />
      ) : (
        <pre tabIndex={0} dir="auto">
          {part.text}
        </pre>
      )}
    </details>
  );
}

/** Return one line of a folded part; of arguments in JSON, their values. */
function foldLine(part: Part): string {
  const text = part.kind === "tool_call" ? argumentValues(part.text) : part.text;
  return plainLine(text).slice(0, 200);
}

/** A longer text is no object that is worth parsing for one line. */
const MOST_JSON = 20_000;

function argumentValues(text: string): string {
  if (!text.startsWith("{") || text.length > MOST_JSON) return text;
  try {
    const values: unknown[] = Object.values(JSON.parse(text) as Record<string, unknown>);
    return values.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" · ") || text;
  } catch {
    return text;
  }
}
