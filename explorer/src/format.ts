/** Numbers, amounts and times as people read them. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Return a time relative to now: "just now", "5 min ago", "yesterday", "3 Oct", "3 Oct 2024". */
export function formatAgo(iso: string, now: Date = new Date()): string {
  const at = new Date(iso);
  const age = (now.getTime() - at.getTime()) / 1000;
  if (Number.isNaN(age)) return "";
  if (age < -MINUTE) return formatDay(iso, now);
  if (age < MINUTE) return "just now";
  if (age < HOUR) return `${Math.floor(age / MINUTE)} min ago`;
  if (age < DAY) return `${Math.floor(age / HOUR)} h ago`;
  if (age < 2 * DAY) return "yesterday";
  if (age < 7 * DAY) return `${Math.floor(age / DAY)} days ago`;
  return formatDay(iso, now);
}

/** Return a day, with the year only if it is another one. */
export function formatDay(iso: string, now: Date = new Date()): string {
  const at = new Date(iso);
  const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return at.getFullYear() === now.getFullYear() ? day : `${day} ${at.getFullYear()}`;
}

/** Return a time in full, for titles. */
export function formatTime(iso: string): string {
  return new Date(iso).toLocaleString("en-GB", {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  });
}

/** Return the time of a day. */
export function formatClock(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

/** Return a count with separators: 12,345. */
export function formatCount(value: number): string {
  return value.toLocaleString("en-GB");
}

/** Return a large number in short: 950, 1.2k, 34k, 5.6M. */
export function formatShort(value: number): string {
  for (const [size, sign] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (Math.abs(value) >= size * 0.9995) {
      const shown = value / size;
      return `${shown.toFixed(shown >= 9.95 ? 0 : 1).replace(/\.0$/, "")}${sign}`;
    }
  }
  return `${Math.round(value)}`;
}

/** Return an amount: $0, <$0.001, $0.042, $1.20, $1,234. */
export function formatUsd(value: number): string {
  if (value === 0) return "$0";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size < 0.001) return `${sign}<$0.001`;
  if (size < 1) return `${sign}$${size.toFixed(3).replace(/0$/, "")}`;
  if (size < 1000) return `${sign}$${size.toFixed(2)}`;
  return `${sign}$${formatCount(Math.round(size))}`;
}

/** Return a share as a percentage. */
export function formatShare(value: number): string {
  const percent = value * 100;
  if (percent > 0 && percent < 1) return "<1 %";
  return `${percent <= -0.5 ? "−" : ""}${Math.abs(Math.round(percent))} %`;
}

/** Return a length of time: 45 s, 3 min, 2 h 5 min, 3 days. */
export function formatDuration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.round(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) {
    const minutes = Math.round((seconds % HOUR) / MINUTE);
    return `${Math.floor(seconds / HOUR)} h${minutes ? ` ${minutes} min` : ""}`;
  }
  return `${Math.round(seconds / DAY)} days`;
}

/** Return a size in bytes: 950 B, 12 kB, 3.4 MB. */
export function formatBytes(value: number): string {
  return value < 1000 ? `${value} B` : `${formatShort(value).replace(/([kMG])$/, " $1")}B`;
}

/** Return "1 message", "2 messages". */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Return a name of the API as words: "bug_fix" is "bug fix". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

/** Return the first characters of an id, enough to name it. */
export function shortId(id: string): string {
  return id.slice(0, 13);
}
