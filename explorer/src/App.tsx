/** The shell: rail, page, palette, help, toasts. */
import { lazy, Suspense, useEffect, useRef, useState, type ComponentType } from "react";
import { useKeys, type Keys } from "./keys";
import { useLiveState, useLiveUpdates, type LiveState } from "./live";
import { ENTRIES } from "./navigation";
import { ErrorBoundary } from "./parts/ErrorBoundary";
import { KeyHelp } from "./parts/KeyHelp";
import { Palette } from "./parts/Palette";
import { Rail } from "./parts/Rail";
import { Empty, Skeleton } from "./parts/states";
import { Toasts } from "./parts/Toasts";
import { Link } from "./parts/Link";
import { navigate, parseRoute, scrollOf, useAddress, type PageName, type Route } from "./router";
import { Search } from "./pages/Search";

const Ask = lazy(() => import("./pages/Ask"));
const FragmentPage = lazy(() => import("./pages/Fragment"));
const Graph = lazy(() => import("./pages/Graph"));
const Health = lazy(() => import("./pages/Health"));
const ItemPage = lazy(() => import("./pages/Item"));
const Review = lazy(() => import("./pages/Review"));
const SessionPage = lazy(() => import("./pages/Session"));
const Sessions = lazy(() => import("./pages/Sessions"));
const Spend = lazy(() => import("./pages/Spend"));
const TaskPage = lazy(() => import("./pages/Task"));
const Tasks = lazy(() => import("./pages/Tasks"));
const Timeline = lazy(() => import("./pages/Timeline"));

const LISTS: Record<PageName, ComponentType> = {
  search: Search,
  ask: Ask,
  sessions: Sessions,
  review: Review,
  timeline: Timeline,
  graph: Graph,
  tasks: Tasks,
  spend: Spend,
  health: Health,
};

function PageView({ route }: { route: Route }) {
  if (route.page === "fragment") return <FragmentPage key={route.id} id={route.id} />;
  if (route.page === "session") return <SessionPage key={route.id} id={route.id} />;
  if (route.page === "item") return <ItemPage key={route.id} id={route.id} />;
  if (route.page === "task") return <TaskPage key={route.id} id={route.id} />;
  if (route.page === "missing") {
    return (
      <Empty title="There is no such page.">
        <Link to="/">Search the memory</Link>
      </Empty>
    );
  }
  const Shown = LISTS[route.page];
  return <Shown />;
}

export function App() {
  const address = useAddress();
  const path = address.split("?")[0] ?? "/";
  const route = parseRoute(path);
  const [overlay, setOverlay] = useState<"" | "palette" | "keys">("");
  const main = useRef<HTMLElement>(null);
  useLiveUpdates();
  useReturnToScroll(address);
  useKeys({
    "/": () => focusSearch(),
    "mod+k": () => setOverlay("palette"),
    "?": () => setOverlay("keys"),
    ...(Object.fromEntries(ENTRIES.map((entry) => [`g ${entry.key}`, () => navigate(entry.path)])) as Keys),
  });
  return (
    <div className="shell">
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <Rail route={route} openPalette={() => setOverlay("palette")} openKeys={() => setOverlay("keys")} />
      <main id="main" ref={main} tabIndex={-1} className="main">
        <Absence />
        <ErrorBoundary key={path}>
          <Suspense fallback={<Skeleton />}>
            <PageView route={route} />
          </Suspense>
        </ErrorBoundary>
      </main>
      {overlay === "palette" && <Palette close={() => setOverlay("")} openKeys={() => setOverlay("keys")} />}
      {overlay === "keys" && <KeyHelp close={() => setOverlay("")} />}
      <Toasts />
    </div>
  );
}

const ABSENCES: Partial<Record<LiveState, string>> = {
  offline: "The server does not respond. This page goes on by itself when it is back.",
  loggedOut: "This browser is logged out. Run 'lore open' to log in again.",
};

/** Say why the page does not follow the memory. */
function Absence() {
  const text = ABSENCES[useLiveState()];
  return text ? (
    <p className="notice" role="alert">
      {text}
    </p>
  ) : null;
}

/** Focus the question of the page, or go to Search, which focuses its own. */
function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field) {
    field.focus();
    field.select();
  } else navigate("/");
}

/** After 'back', scroll to where the page was left; it may still load. */
function useReturnToScroll(address: string): void {
  useEffect(() => {
    const top = scrollOf(address);
    if (!top) return undefined;
    let tries = 20;
    const timer = setInterval(() => {
      window.scrollTo(0, top);
      tries -= 1;
      if (tries <= 0 || Math.abs(window.scrollY - top) < 4) clearInterval(timer);
    }, 50);
    return () => clearInterval(timer);
  }, [address]);
}
