import { expect, test } from "vitest";
import { parseBlocks, parseSpans, plainLine, safeAddress } from "../src/markup";

test("paragraphs, lists, headings and code are told apart", () => {
  const blocks = parseBlocks(
    "# Title\n\nOne\ntwo\n\n- a\n- b\n  more\n\n1. x\n\n```sql\nSELECT 1\n```\n> said",
  );
  expect(blocks.map((one) => one.type)).toEqual(["heading", "paragraph", "list", "list", "code", "quote"]);
});

test("code is kept letter by letter", () => {
  expect(parseBlocks("```\n<b>*x*</b>\n\n- y\n```")).toEqual([
    { type: "code", language: "", text: "<b>*x*</b>\n\n- y" },
  ]);
});

test("a fence that is never closed runs to the end", () => {
  expect(parseBlocks("```js\na\nb")).toEqual([{ type: "code", language: "js", text: "a\nb" }]);
});

test("spans keep every letter of what they do not know", () => {
  expect(parseSpans("a `b` **c** <i>d</i>")).toEqual([
    { type: "text", text: "a " },
    { type: "code", text: "b" },
    { type: "text", text: " " },
    { type: "strong", text: "c" },
    { type: "text", text: " <i>d</i>" },
  ]);
});

test("only http and https are links", () => {
  for (const address of [
    "javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "//evil.example",
    "java\nscript:x",
    "file:///etc/passwd",
  ]) {
    expect(safeAddress(address)).toBe("");
    expect(parseSpans(`[x](${address})`).some((span) => span.type === "link")).toBe(false);
  }
  expect(parseSpans("see [docs](https://example.org/a) now")[1]).toEqual({
    type: "link",
    text: "docs",
    href: "https://example.org/a",
  });
});

test("a bare address is a link", () => {
  expect(parseSpans("at https://example.org/x, then")[1]).toMatchObject({
    type: "link",
    href: "https://example.org/x",
  });
});

test("long hostile texts are parsed in time", () => {
  for (const piece of [
    "*",
    "`",
    "[",
    "**a",
    "|",
    "> ",
    "- ",
    "[x](",
    "https://",
    "```\n",
    "- a\n",
    "| a |\n",
  ])
    expect(parseBlocks(piece.repeat(20_000)).length).toBeGreaterThan(0);
});

test("the first line that says something is the title", () => {
  expect(plainLine("\n## **Use** `pnpm`\nmore")).toBe("Use pnpm");
  expect(plainLine("```\ncode")).toBe("code");
});
