/** Stored text as elements: Markdown structure, inert links, and marked words. */
import { memo, type ReactNode } from "react";
import { hostOf, parseBlocks, type Block, type Span } from "../markup";

/** Longer texts are cut until they are asked for; a page stays fast. */
const MOST_CHARS = 100_000;

export const Markup = memo(function Markup({ text, marks = [] }: { text: string; marks?: string[] }) {
  const shown = text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
  const pattern = markPattern(marks);
  return (
    <div className="markup" dir="auto">
      {parseBlocks(shown).map((block, at) => (
        <BlockView key={at} block={block} pattern={pattern} />
      ))}
    </div>
  );
});

function BlockView({ block, pattern }: { block: Block; pattern: RegExp | null }): ReactNode {
  switch (block.type) {
    case "code":
      return (
        <pre tabIndex={0} aria-label={block.language ? `Code: ${block.language}` : "Code"}>
          <code>{block.text}</code>
        </pre>
      );
    case "heading":
      return (
        <p className="markup-heading">
          <Spans spans={block.spans} pattern={pattern} />
        </p>
      );
    case "quote":
      return (
        <blockquote>
          <Spans spans={block.spans} pattern={pattern} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((spans, at) => (
        <li key={at}>
          <Spans spans={spans} pattern={pattern} />
        </li>
      ));
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div className="markup-table">
          <table>
            <tbody>
              {block.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column}>
                      <Spans spans={cell} pattern={pattern} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    default:
      return (
        <p>
          <Spans spans={block.spans} pattern={pattern} />
        </p>
      );
  }
}

function Spans({ spans, pattern }: { spans: Span[]; pattern: RegExp | null }): ReactNode {
  return spans.map((span, at) => {
    if (span.type === "code")
      return (
        <code key={at}>
          <Marked text={span.text} pattern={pattern} />
        </code>
      );
    if (span.type === "strong")
      return (
        <strong key={at}>
          <Marked text={span.text} pattern={pattern} />
        </strong>
      );
    if (span.type === "emphasis")
      return (
        <em key={at}>
          <Marked text={span.text} pattern={pattern} />
        </em>
      );
    if (span.type === "link") return <OutsideLink key={at} href={span.href} text={span.text} />;
    return <Marked key={at} text={span.text} pattern={pattern} />;
  });
}

/** A link in stored text: opens without a referrer, and shows where it leads. */
function OutsideLink({ href, text }: { href: string; text: string }) {
  const host = hostOf(href);
  return (
    <a className="outside" href={href} target="_blank" rel="noreferrer noopener nofollow" title={href}>
      {text}
      {text.includes(host) ? null : <span className="outside-host"> {host}</span>}
    </a>
  );
}

/** Return a pattern for the words of a question, or null if none is worth marking. */
export function markPattern(marks: string[]): RegExp | null {
  const found = marks
    .filter((word) => word.length > 2)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // A word is marked to its end: "retry" also in "retrying".
  return found.length
    ? new RegExp(`(?<![\\p{L}\\p{N}])((?:${found.join("|")})[\\p{L}\\p{N}]*)`, "giu")
    : null;
}

export function Marked({ text, pattern }: { text: string; pattern: RegExp | null }): ReactNode {
  if (!pattern) return text;
  return text.split(pattern).map((piece, at) => (at % 2 ? <mark key={at}>{piece}</mark> : piece));
}
