/** Review: a queue of decisions, cleared with the keyboard. */
import { useEffect, useRef, useState } from "react";
import type { Api } from "../api";
import { change as sendChange } from "../corrections";
import { formatShare } from "../format";
import { useKeys, type Keys } from "../keys";
import { plainLine, shorten } from "../markup";
import { projectName, useProjects, useRefusal } from "../me";
import { Choice } from "../parts/Chips";
import { Kind } from "../parts/Kind";
import { Link } from "../parts/Link";
import { Markup } from "../parts/Markup";
import { More } from "../parts/More";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { usePages, useQuery } from "../query";
import { itemPath, useParameters } from "../router";
import "../styles/review.css";
import { useTitle } from "../title";

type Item = Api<"ReviewItem">;
type Decision = Item["options"][number];

const KINDS: Record<string, [name: string, question: string]> = {
  instruction: ["Possible rules", "Should agents always follow this?"],
  replacement: ["Replacements", "Does the newer one replace the older one?"],
  conflict: ["Contradictions", "Which of the two holds?"],
  merge: ["To be merged", "Are these the same?"],
  prune: ["To be pruned", "May this go?"],
  untrusted: ["Not trusted", "May agents rely on this?"],
  shared: ["Shared pages", "Take over this change?"],
  promotion: ["For all projects", "Does this hold everywhere?"],
};

const NAMES: Record<Decision, string> = {
  approve: "Approve",
  reject: "Reject",
  keep_newer: "Keep the newer",
  keep_older: "Keep the older",
  both: "Both hold",
  dismiss: "Dismiss",
  keep: "Keep",
  delete: "Let it go",
};

/** The keys of the choices, in their order. */
const KEYS = ["a", "r", "b", "x"];

/** The queue is loaded anew by then. */
const SETTLE_MS = 3000;

export default function Review() {
  useTitle("Review");
  const [values, change] = useParameters();
  const kind = values.get("kind") ?? "";
  const counts = useQuery<Api<"ReviewCounts">>({ path: "/review/counts" }).data?.counts as
    Record<string, number> | undefined;
  const queue = usePages<Item>({ path: "/review", query: { kind, limit: 30 } }, (one) => one.id);
  const [decided, setDecided] = useState<ReadonlySet<string>>(new Set());
  const items = queue.items.filter((one) => !decided.has(one.id));

  async function decide(item: Item, decision: Decision): Promise<void> {
    setDecided(new Set([...decided, item.id]));
    await sendChange(
      `/review/${encodeURIComponent(item.id)}`,
      { decision },
      `${NAMES[decision]}: ${shorten(plainLine(item.title), 60)}`,
    );
    // From here on the queue of the server says whether it waits: it may be refused or undone.
    setTimeout(() => setDecided((now) => new Set([...now].filter((id) => id !== item.id))), SETTLE_MS);
  }
  return (
    <div className="page review">
      <header className="page-head">
        <h1>Review</h1>
        <p>what Lore would like to know from you</p>
        <span className="push chips">
          <Choice
            label="Kind"
            value={kind}
            options={Object.entries(KINDS).map(
              ([one, [name]]) => [one, counts?.[one] ? `${name} (${counts[one]})` : name] as const,
            )}
            change={(chosen) => change({ kind: chosen })}
          />
        </span>
      </header>
      {queue.error && <FailureNote failure={queue.error} />}
      {!items.length &&
        !queue.error &&
        (queue.loading ? <Skeleton rows={4} tall /> : <Done filtered={kind !== ""} />)}
      <Queue items={items} decide={(item, decision) => void decide(item, decision)} />
      <More more={queue.more} loading={queue.loading && items.length > 0} />
    </div>
  );
}

function Queue({ items, decide }: { items: Item[]; decide: (item: Item, decision: Decision) => void }) {
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const moved = useRef(false);
  const refusal = useRefusal("admin");
  const index = Math.min(at, Math.max(items.length - 1, 0));
  const current = items[index];
  useEffect(() => {
    if (moved.current) list.current?.querySelector<HTMLElement>(`[data-at="${index}"]`)?.focus();
  }, [index, current?.id]);
  function move(step: number): void {
    moved.current = true;
    setAt(Math.min(Math.max(index + step, 0), items.length - 1));
  }
  const choices: Keys = {};
  if (current && !refusal)
    current.options.forEach((option, place) => {
      choices[KEYS[place] ?? ""] = () => {
        moved.current = true;
        decide(current, option);
      };
    });
  useKeys({ j: () => move(1), k: () => move(-1), ...choices });
  return (
    <ul ref={list} className="queue" aria-label="Waiting">
      {items.map((item, place) => (
        <QueueItem
          key={item.id}
          item={item}
          place={place}
          current={place === index}
          refusal={refusal}
          focused={() => setAt(place)}
          decide={(decision) => decide(item, decision)}
        />
      ))}
    </ul>
  );
}

type ItemProperties = {
  item: Item;
  place: number;
  current: boolean;
  refusal: string;
  focused: () => void;
  decide: (decision: Decision) => void;
};

function QueueItem({ item, place, current, refusal, focused, decide }: ItemProperties) {
  const projects = useProjects();
  const [name, question] = KINDS[item.kind] ?? [item.kind, ""];
  const project = projectName(projects, item.project_id);
  return (
    <li className="queue-item" data-current={current || undefined}>
      <div
        data-at={place}
        data-row=""
        tabIndex={0}
        className="queue-body"
        onFocus={focused}
        role="group"
        aria-label={`${name}: ${item.title}`}
      >
        <p className="meta">
          <span className="tag" data-tone="accent">
            {name}
          </span>
          {project && <span>{project}</span>}
          {item.at && <Time at={item.at} />}
          {item.certainty !== null && item.certainty !== undefined && (
            <span>{formatShare(item.certainty)} sure</span>
          )}
        </p>
        <h2 className="queue-question">{question}</h2>
        <div className="queue-texts" data-count={item.texts.length}>
          {item.texts.map((text, at) => (
            <TextView key={text.id + at} text={text} name={ages(item)[at] ?? ""} />
          ))}
        </div>
        {item.why && item.kind !== "instruction" && <p className="quiet small">{item.why}</p>}
      </div>
      <div className="button-row">
        {item.options.map((option, at) => (
          <button
            key={option}
            type="button"
            className={`button${at === 0 && current ? " primary" : ""}`}
            disabled={Boolean(refusal)}
            title={refusal}
            onClick={() => decide(option)}
          >
            {NAMES[option]} {current && KEYS[at] && <kbd>{KEYS[at]}</kbd>}
          </button>
        ))}
      </div>
    </li>
  );
}

/** Return "newer" and "older" for two texts of different times. */
function ages(item: Item): string[] {
  const [a, b] = item.texts;
  if (item.texts.length !== 2 || !a?.at || !b?.at || a.at === b.at) return [];
  return a.at > b.at ? ["Newer", "Older"] : ["Older", "Newer"];
}

function TextView({ text, name }: { text: Item["texts"][number]; name: string }) {
  const isPage = text.type === "page";
  return (
    <div className="queue-text">
      {name && <h3>{name}</h3>}
      <Markup text={text.text} />
      <p className="meta">
        {text.kind && <Kind kind={text.kind} />}
        <span>{text.origin}</span>
        {text.at && <Time at={text.at} />}
        {!isPage && <Link to={itemPath(text)}>Open</Link>}
      </p>
    </div>
  );
}

function Done({ filtered }: { filtered: boolean }) {
  return (
    <Empty title={filtered ? "Nothing of this kind waits." : "Nothing waits for you."}>
      <p>
        Possible rules, contradictions, and knowledge from sources that are not trusted appear here as
        sessions are digested. Decide with <kbd>a</kbd>, <kbd>r</kbd> and <kbd>b</kbd>; <kbd>u</kbd> takes a
        decision back.
      </p>
    </Empty>
  );
}
