/** The rail at the left, and the bar at the bottom of a narrow window. */
import { useLiveState } from "../live";
import { useMe } from "../me";
import { ENTRIES } from "../navigation";
import { useQuery } from "../query";
import type { Route } from "../router";
import { applyTheme, nextTheme, useTheme } from "../theme";
import { Icon } from "./Icon";
import { Link } from "./Link";

/** The pages of the bottom bar; the palette has the others. */
const NARROW = new Set(["search", "ask", "sessions", "review"]);

const PARENTS: Record<string, string> = {
  fragment: "search",
  session: "sessions",
  item: "sessions",
  task: "tasks",
};

export function Rail({
  route,
  openPalette,
  openKeys,
}: {
  route: Route;
  openPalette: () => void;
  openKeys: () => void;
}) {
  const current = PARENTS[route.page] ?? route.page;
  const waiting = useQuery<{ counts: Record<string, number>; most: number }>({ path: "/review/counts" }).data;
  const count = waiting ? Object.values(waiting.counts).reduce((sum, one) => sum + one, 0) : 0;
  return (
    <nav className="rail" aria-label="Pages">
      <Link to="/" className="brand" aria-label="Lore, search">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span>Lore</span>
      </Link>
      <button
        type="button"
        className="rail-jump"
        onClick={openPalette}
        aria-label={`Jump to… ${commandKey()} K: the command palette`}
      >
        <Icon name="search" />
        <span>Jump to…</span>
        <kbd>{commandKey()} K</kbd>
      </button>
      <ul>
        {ENTRIES.map((entry) => (
          <li key={entry.page} data-narrow={NARROW.has(entry.page) || undefined}>
            <Link
              to={entry.path}
              className="rail-link"
              aria-current={current === entry.page ? "page" : undefined}
              title={`${entry.name} (g ${entry.key})`}
            >
              <Icon name={entry.page} />
              <span>{entry.name}</span>
              {entry.page === "review" && count > 0 && (
                <span className="count" aria-label={`${count} wait`}>
                  {count > 99 ? "99+" : count}
                </span>
              )}
            </Link>
          </li>
        ))}
        <li className="rail-more">
          <button type="button" className="rail-link" onClick={openPalette}>
            <Icon name="more" />
            <span>More</span>
          </button>
        </li>
      </ul>
      <RailFoot openKeys={openKeys} />
    </nav>
  );
}

const LIVE_TEXT = {
  live: "Live",
  connecting: "Connecting…",
  offline: "Server away",
  loggedOut: "Logged out",
};

function RailFoot({ openKeys }: { openKeys: () => void }) {
  const live = useLiveState();
  const theme = useTheme();
  const me = useMe();
  return (
    <div className="rail-foot">
      <p className="live" data-state={live} role="status">
        <i aria-hidden="true" />
        <span>{LIVE_TEXT[live]}</span>
      </p>
      {me?.read_only && <p className="quiet rail-note">Reading only</p>}
      <div className="rail-tools">
        <button
          type="button"
          className="icon-button"
          onClick={() => applyTheme(nextTheme(theme))}
          aria-label={`Theme: ${theme}. Change it`}
          title={`Theme: ${theme}`}
        >
          <Icon name="theme" />
        </button>
        <button
          type="button"
          className="icon-button"
          onClick={openKeys}
          aria-label="Keyboard shortcuts"
          title="Keys (?)"
        >
          <Icon name="keyboard" />
        </button>
      </div>
    </div>
  );
}

/** Return the sign of the key that opens the palette here. */
export function commandKey(): string {
  return /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl";
}
