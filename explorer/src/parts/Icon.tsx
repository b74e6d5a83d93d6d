/** The icons of the explorer: 16 px strokes, drawn here. */
import type { ReactNode } from "react";

const DRAWINGS: Record<string, ReactNode> = {
  search: (
    <>
      <circle cx="7" cy="7" r="4.25" />
      <path d="m10.2 10.2 3.3 3.3" />
    </>
  ),
  ask: (
    <>
      <path d="M2.5 3.5h11v7.5H8l-3 2.5V11H2.5z" />
      <path d="M5.5 6.2h5M5.5 8.5h3" />
    </>
  ),
  sessions: (
    <>
      <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />
    </>
  ),
  review: (
    <>
      <rect x="2.5" y="2.5" width="11" height="11" rx="2" />
      <path d="m5.5 8.2 1.8 1.8 3.4-3.8" />
    </>
  ),
  timeline: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 4.8V8l2.2 1.5" />
    </>
  ),
  graph: (
    <>
      <circle cx="4" cy="4.5" r="1.75" />
      <circle cx="12" cy="6" r="1.75" />
      <circle cx="6.5" cy="12" r="1.75" />
      <path d="m5.7 4.9 4.6.8M4.6 6.2l1.4 4.1M11 7.4l-3.3 3.4" />
    </>
  ),
  tasks: (
    <>
      <path d="m2.5 4.2 1.2 1.2 2-2.3M2.5 10.7l1.2 1.2 2-2.3M8.5 4.5h5M8.5 11h5" />
    </>
  ),
  spend: (
    <>
      <path d="M2.5 13.5h11" />
      <path d="M4 11V8.5M7 11V5M10 11V7M13 11V3" />
    </>
  ),
  health: <path d="M1.8 8.5h3l1.7-4.5 3 8 1.7-3.5h3" />,
  fragment: (
    <>
      <path d="M4 2.5h5.5L12.5 5.5V13.5H4z" />
      <path d="M9.2 2.7V5.7h3" />
    </>
  ),
  message: <path d="M2.5 3.5h11v8H7l-2.5 2V11.5h-2z" />,
  log: (
    <>
      <path d="M3.5 2.5h9v11h-9z" />
      <path d="M5.8 5.5h4.4M5.8 8h4.4M5.8 10.5h2.4" />
    </>
  ),
  edit: <path d="m3 13 .6-2.8 7-7 2.2 2.2-7 7zM9.3 4.5l2.2 2.2" />,
  replace: <path d="M3 6h9.5L10 3.5M13 10H3.5L6 12.5" />,
  check: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  trash: <path d="M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M6.8 7v3.5M9.2 7v3.5" />,
  undo: <path d="M5.5 3 2.8 5.7l2.7 2.7M3 5.7h6.5a3.5 3.5 0 0 1 0 7H6" />,
  theme: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor" />
    </>
  ),
  keyboard: (
    <>
      <rect x="1.5" y="4" width="13" height="8.5" rx="1.5" />
      <path d="M4 6.8h.01M6.7 6.8h.01M9.3 6.8h.01M12 6.8h.01M5 9.8h6" />
    </>
  ),
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" strokeWidth="2.2" />,
  right: <path d="m6 3.5 4.5 4.5L6 12.5" />,
  down: <path d="m3.5 6 4.5 4.5L12.5 6" />,
  link: <path d="M6.8 9.2 9.2 6.8M7.3 4.7l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.7 11.3l-1 1a2.8 2.8 0 0 1-4-4l1-1" />,
  tool: (
    <path d="M9.8 2.7a3.3 3.3 0 0 0-3.5 4.6L2.6 11a1.7 1.7 0 0 0 2.4 2.4l3.7-3.7a3.3 3.3 0 0 0 4.6-3.5L11.2 8 8.9 7.1 8 4.8z" />
  ),
  person: (
    <>
      <circle cx="8" cy="5.3" r="2.6" />
      <path d="M3 13.3c.5-2.7 2.5-4 5-4s4.5 1.3 5 4" />
    </>
  ),
  spark: <path d="M8 2.2 9.4 6.6 13.8 8 9.4 9.4 8 13.8 6.6 9.4 2.2 8l4.4-1.4z" />,
  warning: (
    <>
      <path d="M8 2.7 14.2 13H1.8z" />
      <path d="M8 6.5v3M8 11.3v.01" />
    </>
  ),
};

export function Icon({ name }: { name: keyof typeof DRAWINGS }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      {DRAWINGS[name]}
    </svg>
  );
}
