/** Parse the Markdown that memories contain into blocks and spans; all else stays text. */

export type Span =
  | { type: "text" | "code" | "strong" | "emphasis"; text: string }
  | { type: "link"; text: string; href: string };

export type Block =
  | { type: "paragraph"; spans: Span[] }
  | { type: "heading"; level: number; spans: Span[] }
  | { type: "code"; language: string; text: string }
  | { type: "quote"; spans: Span[] }
  | { type: "list"; ordered: boolean; items: Span[][] }
  | { type: "table"; rows: Span[][][] };

const FENCE = /^\s{0,8}(```|~~~)\s*([\w+.#-]*)/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:([-*+])|(\d{1,4})[.)])\s+(.*)$/;
const ROW = /^\s*\|(.+)\|\s*$/;
const RULE = /^[\s|:-]+$/;

/** Return the blocks of a text. */
export function parseBlocks(text: string): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? "";
    const fence = FENCE.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) {
      const end = closingFence(lines, at + 1, fence[1] ?? "```");
      blocks.push({ type: "code", language: fence[2] ?? "", text: lines.slice(at + 1, end).join("\n") });
      at = end + 1;
    } else {
      const [block, next] = parseBlock(lines, at);
      blocks.push(block);
      at = next;
    }
  }
  return blocks;
}

function closingFence(lines: string[], from: number, mark: string): number {
  let end = from;
  while (end < lines.length && !(lines[end] ?? "").trimStart().startsWith(mark)) end += 1;
  return end;
}

function parseBlock(lines: string[], at: number): [Block, number] {
  const line = lines[at] ?? "";
  const heading = HEADING.exec(line);
  if (heading) {
    return [{ type: "heading", level: heading[1]?.length ?? 1, spans: parseSpans(heading[2] ?? "") }, at + 1];
  }
  if (ITEM.test(line)) return parseList(lines, at);
  if (ROW.test(line)) return parseTable(lines, at);
  const end = blockEnd(lines, at);
  const text = lines.slice(at, end);
  if (line.startsWith(">")) {
    return [
      { type: "quote", spans: parseSpans(text.map((one) => one.replace(/^>\s?/, "")).join("\n")) },
      end,
    ];
  }
  return [{ type: "paragraph", spans: parseSpans(text.join("\n")) }, end];
}

function startsBlock(line: string): boolean {
  return !line.trim() || FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || ROW.test(line);
}

function blockEnd(lines: string[], at: number): number {
  let end = at + 1;
  while (end < lines.length && !startsBlock(lines[end] ?? "")) end += 1;
  return end;
}

function parseList(lines: string[], at: number): [Block, number] {
  const ordered = ITEM.exec(lines[at] ?? "")?.[2] !== undefined;
  const items: string[] = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const line = lines[next] ?? "";
    const item = ITEM.exec(line);
    if (item) {
      if ((item[2] !== undefined) !== ordered && !/^\s/.test(line)) break;
      items.push(item[3] ?? "");
    } else if (line.trim() && /^\s+/.test(line) && !FENCE.test(line)) {
      items[items.length - 1] += `\n${line.trim()}`;
    } else break;
  }
  return [{ type: "list", ordered, items: items.map(parseSpans) }, next];
}

function parseTable(lines: string[], at: number): [Block, number] {
  const rows: Span[][][] = [];
  let next = at;
  for (; next < lines.length && ROW.test(lines[next] ?? ""); next += 1) {
    const inner = ROW.exec(lines[next] ?? "")?.[1] ?? "";
    if (!RULE.test(inner)) rows.push(inner.split("|").map((cell) => parseSpans(cell.trim())));
  }
  return [{ type: "table", rows }, next];
}

/** Lengths are limited, so that a hostile text costs no more than another. */
const SPAN =
  /`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,400})\*(?!\w)|\[([^[\]\n]{1,400})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"'`)\]]{1,2000}[^\s<>"'`)\].,;:!?])/g;

/** Return the spans of a paragraph. */
export function parseSpans(text: string): Span[] {
  const spans: Span[] = [];
  let last = 0;
  for (const match of text.matchAll(SPAN)) {
    if (match.index > last) spans.push({ type: "text", text: text.slice(last, match.index) });
    spans.push(spanOf(match));
    last = match.index + match[0].length;
  }
  if (last < text.length) spans.push({ type: "text", text: text.slice(last) });
  return spans;
}

function spanOf(match: RegExpExecArray): Span {
  const [whole, code, strong, emphasis, label, target, address] = match;
  if (code !== undefined) return { type: "code", text: code };
  if (strong !== undefined) return { type: "strong", text: strong };
  if (emphasis !== undefined) return { type: "emphasis", text: emphasis };
  const href = safeAddress(target ?? address ?? "");
  if (!href) return { type: "text", text: whole };
  return { type: "link", text: label ?? address ?? href, href };
}

/** Return an address that may be opened: http and https only, else an empty text. */
export function safeAddress(address: string): string {
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : "";
  } catch {
    return "";
  }
}

/** Return the host of an address. */
export function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return "";
  }
}

/** Return the first line that says something, without its marks; for titles and rows. */
export function plainLine(text: string): string {
  const line = text.split("\n").find((one) => /[\p{L}\p{N}]/u.test(one) && !FENCE.test(one)) ?? text;
  return line
    .replace(/^[\s>#*+-]+|^\s*\d+[.)]\s+/, "")
    .replace(/\*\*|`/g, "")
    .replace(/:\s+1\.$/, "") // the first number of a list that follows
    .trim();
}

/** Titles and openings are cut here by the server. */
const TITLE_CHARS = 200;

/** Return the title of a session, or how it began; what was cut says so. */
export function sessionTitle(session: { title: string; opening: string }): string {
  const text = session.title || session.opening;
  // A pasted plan stands on one line here: its first heading says enough.
  const [head = "", ...rest] = text.split(/\s+#{2,6}\s+/);
  const line = plainLine(head).replace(/\s#\s+/, " ");
  const isCut = rest.length === 0 && text.length >= TITLE_CHARS;
  return isCut && line ? `${line.replace(/[\s.,;:]+$/, "")}…` : line;
}

/** Return a text of at most some characters; what was cut says so. */
export function shorten(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).trimEnd()}…` : text;
}
