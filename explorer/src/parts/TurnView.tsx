/** One turn: its messages, and beside them what memory did. */
import { useEffect, useRef, useState } from "react";
import type { Api } from "../api";
import { formatClock, formatShort, formatTime, formatUsd, plural } from "../format";
import { plainLine } from "../markup";
import { usePages } from "../query";
import { itemPath } from "../router";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { MessageView } from "./MessageView";
import { More } from "./More";
import { FailureNote, Skeleton } from "./states";

type Turn = Api<"Turn">;
type Properties = { turn: Turn; session: string; message: string };

/** Messages of one request; a long turn loads more at its end. */
const MESSAGES = 60;

export function TurnView({ turn, session, message }: Properties) {
  const place = useRef<HTMLLIElement>(null);
  const seen = useSeen(place);
  return (
    <li ref={place} id={`turn-${turn.number}`} className="turn">
      <div className="turn-main">
        <TurnHead turn={turn} session={session} />
        {seen || message ? (
          <Messages turn={turn} session={session} message={message} />
        ) : (
          <p className="turn-prompt">{plainLine(turn.prompt)}</p>
        )}
      </div>
      <TurnAside turn={turn} />
    </li>
  );
}

/** Return whether an element has come near the view. */
function useSeen(place: React.RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (!element || seen) return undefined;
    const observer = new IntersectionObserver(
      (entries) => entries.some((one) => one.isIntersecting) && setSeen(true),
      { rootMargin: "400px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [place, seen]);
  return seen;
}

function TurnHead({ turn, session }: { turn: Turn; session: string }) {
  return (
    <div className="turn-head meta">
      <h2>
        <Link row to={`/sessions/${encodeURIComponent(session)}?turn=${turn.number}`}>
          Turn {turn.number}
        </Link>
      </h2>
      <time dateTime={turn.started_at} title={formatTime(turn.started_at)}>
        {formatClock(turn.started_at)}
      </time>
      {turn.tool_calls > 0 && <span>{plural(turn.tool_calls, "tool call")}</span>}
      {turn.tool_errors > 0 && (
        <span className="tag" data-tone="bad">
          {turn.tool_errors} failed
        </span>
      )}
    </div>
  );
}

function Messages({ turn, session, message }: Properties) {
  const query = { first: turn.first, last: turn.last, limit: MESSAGES };
  const messages = usePages<Api<"Message">>(
    { path: `/sessions/${encodeURIComponent(session)}/messages`, query },
    (one) => one.id,
  );
  if (messages.error) return <FailureNote failure={messages.error} />;
  if (!messages.items.length) return messages.loading ? <Skeleton rows={3} /> : null;
  return (
    <>
      {messages.items.map((one) => (
        <MessageView key={one.id} message={one} isTarget={one.id === message} />
      ))}
      <More more={messages.more} loading={messages.loading} />
    </>
  );
}

function TurnAside({ turn }: { turn: Turn }) {
  const { tokens } = turn;
  const input =
    tokens.fresh_tokens + tokens.cache_read_tokens + tokens.cache_write_tokens + tokens.cache_write_1h_tokens;
  return (
    <aside className="turn-aside" aria-label={`About turn ${turn.number}`}>
      {turn.requests.length > 0 && (
        <dl className="facts">
          <dt>{turn.models.length === 1 ? "Model" : "Models"}</dt>
          <dd>{turn.models.join(", ")}</dd>
          <dt>Tokens</dt>
          <dd className="number">
            {formatShort(input)} in, {formatShort(tokens.output_tokens)} out
            {input > 0 && tokens.cache_read_tokens > 0 && (
              <span className="quiet">
                {" "}
                · {Math.round((tokens.cache_read_tokens / input) * 100)} % cached
              </span>
            )}
          </dd>
          <dt>Cost</dt>
          <dd className="number">
            {formatUsd(turn.usd)}
            {turn.without_usd - turn.usd > 0.0005 && (
              <span className="saved"> saved {formatUsd(turn.without_usd - turn.usd)}</span>
            )}
          </dd>
          {turn.layer !== null && (
            <>
              <dt>Layer</dt>
              <dd>
                <Layer layer={turn.layer} />
              </dd>
            </>
          )}
        </dl>
      )}
      {turn.logs.length > 0 && <Log turn={turn} />}
      <Items
        title="Given to the agent"
        why="unasked, because it concerns the prompt"
        items={turn.injected.flatMap((one) => one.items)}
      />
      {turn.recalled.map((one, at) => (
        <section key={at}>
          <p className="quiet small turn-asked">
            {one.verb} “{one.query}”, {one.items.length} found
          </p>
          <ItemList items={one.items} />
        </section>
      ))}
      <Items title="Learned" items={turn.learned} />
    </aside>
  );
}

/** What the gateway does to a prompt, by layer. */
export const LAYERS = [
  "passed on whole",
  "tools folded",
  "turns distilled",
  "distillations merged",
  "emergency",
];

export function Layer({ layer }: { layer: number }) {
  return (
    <span className="layer" title={LAYERS[layer]}>
      {[0, 1, 2, 3, 4].map((one) => (
        <i key={one} data-on={one <= layer || undefined} />
      ))}
      <span>
        {layer} · {LAYERS[layer]}
      </span>
    </span>
  );
}

/** Lines of the log that are shown at first. */
const LOG_LINES = 6;

function Log({ turn }: { turn: Turn }) {
  const [all, setAll] = useState(false);
  const lines = turn.logs.flatMap((one) => one.lines);
  if (!lines.length) return null;
  return (
    <section>
      <h3>Log</h3>
      <ul className="log-lines" dir="auto">
        {(all ? lines : lines.slice(0, LOG_LINES)).map((line, at) => (
          <li key={at}>{plainLine(line)}</li>
        ))}
      </ul>
      {lines.length > LOG_LINES && !all && (
        <button type="button" className="button plain" onClick={() => setAll(true)}>
          {lines.length - LOG_LINES} more lines
        </button>
      )}
    </section>
  );
}

type Given = Api<"GivenItem">[];

function Items({ title, why = "", items }: { title: string; why?: string; items: Given }) {
  if (!items.length) return null;
  return (
    <section>
      <h3>{title}</h3>
      {why && <p className="quiet small">{why}</p>}
      <ItemList items={items} />
    </section>
  );
}

/** Items with the tokens that each takes in the prompt. */
function ItemList({ items }: { items: Given }) {
  const unique = [...new Map(items.map((one) => [one.id, one])).values()];
  return (
    <ul className="given">
      {unique.map((one) => (
        <li key={one.id}>
          <Link to={itemPath(one)}>
            <Kind kind={one.kind || one.type} />
            <span className="given-title">{plainLine(one.title)}</span>
            {one.tokens > 0 && (
              <span className="row-end number" title="Tokens">
                {formatShort(one.tokens)}
              </span>
            )}
          </Link>
        </li>
      ))}
    </ul>
  );
}
