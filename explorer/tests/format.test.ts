import { expect, test } from "vitest";
import {
  formatAgo,
  formatBytes,
  formatDuration,
  formatShare,
  formatShort,
  formatUsd,
  plural,
  words,
} from "../src/format";

const NOW = new Date("2026-11-17T12:00:00Z");

test("times are relative for a week, then dates", () => {
  const ago = (seconds: number) => formatAgo(new Date(NOW.getTime() - seconds * 1000).toISOString(), NOW);
  expect([ago(5), ago(300), ago(7200), ago(100_000), ago(300_000)]).toEqual([
    "just now",
    "5 min ago",
    "2 h ago",
    "yesterday",
    "3 days ago",
  ]);
  expect(formatAgo("2025-03-02T12:00:00Z", NOW)).toBe("2 Mar 2025");
  expect(formatAgo("nonsense", NOW)).toBe("");
});

test("numbers are short", () => {
  expect([0, 950, 999.7, 1234, 34_500, 5_600_000].map(formatShort)).toEqual([
    "0",
    "950",
    "1k",
    "1.2k",
    "35k",
    "5.6M",
  ]);
});

test("amounts show as many digits as they need", () => {
  expect([0, 0.0001, 0.0421, 0.2, 1.2, 1234.5, -0.5].map(formatUsd)).toEqual([
    "$0",
    "<$0.001",
    "$0.042",
    "$0.20",
    "$1.20",
    "$1,235",
    "−$0.50",
  ]);
});

test("shares, sizes and durations have their units", () => {
  expect([
    formatShare(0.004),
    formatShare(0.5),
    formatBytes(950),
    formatBytes(3_400_000),
    formatDuration(0.05),
    formatDuration(3900),
  ]).toEqual(["<1 %", "50 %", "950 B", "3.4 MB", "50 ms", "1 h 5 min"]);
});

test("words and plurals read well", () => {
  expect([words("bug_fix"), plural(1, "hit"), plural(1200, "hit")]).toEqual([
    "bug fix",
    "1 hit",
    "1,200 hits",
  ]);
});
