/** Search: a question, filters, results, and what the memory holds when nothing is asked. */
import { useEffect, useRef, useState } from "react";
import type { Api, Call } from "../api";
import { plural } from "../format";
import { hasKeyboard, useKeys, useRowKeys } from "../keys";
import { projectName, useProjects } from "../me";
import { HitRow } from "../parts/HitRow";
import { Icon } from "../parts/Icon";
import { Link } from "../parts/Link";
import { markPattern } from "../parts/Markup";
import { Overview } from "../parts/Overview";
import { Preview, type Previewed } from "../parts/Preview";
import { SearchFilters } from "../parts/SearchFilters";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { useQuery } from "../query";
import { useParameters, withParameters } from "../router";
import "../styles/search.css";
import { useTitle } from "../title";

/** Results of a page; more is asked for at its end. */
const STEP = 30;
const MOST = 300;
/** A question is sent when typing pauses. */
const PAUSE_MS = 220;

export function Search() {
  const [values, change] = useParameters();
  const question = values.get("q") ?? "";
  useTitle(question ? `${question}` : "Search");
  return (
    <div className="page search">
      <h1 className="sr-only">Search</h1>
      <QuestionField key="field" question={question} change={(q) => change({ q }, true)} />
      <SearchFilters values={values} change={(changes) => change(changes)} />
      {question ? <Results values={values} /> : <Overview values={values} />}
    </div>
  );
}

function QuestionField({ question, change }: { question: string; change: (question: string) => void }) {
  const [text, setText] = useState(question);
  const field = useRef<HTMLInputElement>(null);
  const sent = useRef(question);
  useEffect(() => {
    if (question !== sent.current) {
      sent.current = question;
      setText(question);
    }
  }, [question]);
  useEffect(() => {
    if (text.trim() === sent.current) return undefined;
    const timer = setTimeout(() => {
      sent.current = text.trim();
      change(text.trim());
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  });
  return (
    <div className="question">
      <Icon name="search" />
      <input
        ref={field}
        data-search=""
        type="search"
        autoFocus={!question && hasKeyboard}
        aria-label="Search the memory"
        placeholder="What do you want to know?"
        value={text}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") field.current?.blur();
          if (event.key === "ArrowDown" || event.key === "Enter") {
            event.preventDefault();
            document.querySelector<HTMLElement>(".results [data-row]")?.focus();
          }
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  );
}

function callOf(values: URLSearchParams, limit: number): Call {
  const value = (name: string) => values.get(name) || undefined;
  const depth = value("depth");
  return {
    path: "/retrieve",
    body: {
      query: value("q"),
      limit,
      everywhere: true,
      explain: depth === undefined,
      kind: value("kind"),
      project: value("project"),
      agent: value("agent"),
      since: value("since"),
      until: value("until"),
      origin: value("origin"),
      under: value("under"),
      depth: depth === undefined ? undefined : Number(depth),
    },
  };
}

const STRENGTHS: Record<string, string> = {
  strong: "Answers the question",
  likely: "Probably answers it",
  weak: "Weak matches",
  none: "Only the nearest",
};

function Results({ values }: { values: URLSearchParams }) {
  const [limit, setLimit] = useState(STEP);
  const [focus, setFocus] = useState<string>();
  const list = useRef<HTMLUListElement>(null);
  const projects = useProjects();
  const answer = useQuery<Api<"RetrieveResult">>(callOf(values, limit));
  const question = values.get("q") ?? "";
  const marks = wordsOf(question);
  const pattern = markPattern(marks);
  useRowKeys(list);
  useKeys({ a: () => document.querySelector<HTMLElement>("[data-ask]")?.click() });
  if (answer.error) return <FailureNote failure={answer.error} retry={answer.reload} />;
  if (!answer.data) return <Skeleton rows={5} tall />;
  const { hits, considered, notice, strength } = answer.data;
  if (!hits.length) return <NoHits values={values} />;
  const shown: Previewed | undefined = hits.find((hit) => hit.id === focus) ?? hits[0];
  return (
    <div className="results-frame" aria-busy={answer.loading}>
      <div className="results-head">
        <p role="status">
          {plural(hits.length, "hit")} of {considered.toLocaleString("en-GB")} considered ·{" "}
          <span data-strength={strength}>{STRENGTHS[strength]}</span>
        </p>
        <Link data-ask="" to={withParameters("/ask", { q: question, project: values.get("project") ?? "" })}>
          Ask for one answer
        </Link>
      </div>
      {notice && <p className="notice">{notice}</p>}
      <div className="results-columns">
        <div className="results">
          <ul ref={list} className="hits" aria-label="Results">
            {hits.map((hit) => (
              <HitRow
                key={hit.id}
                hit={hit}
                pattern={pattern}
                project={projectName(projects, hit.project_id)}
                active={shown?.id === hit.id}
                focused={() => setFocus(hit.id)}
              />
            ))}
          </ul>
          {hits.length >= limit && limit < MOST && (
            <button type="button" className="button more" onClick={() => setLimit(limit + STEP)}>
              Show more
            </button>
          )}
        </div>
        {shown && <Preview item={shown} marks={marks} />}
      </div>
    </div>
  );
}

function NoHits({ values }: { values: URLSearchParams }) {
  const [, change] = useParameters();
  const filters = ["kind", "project", "agent", "since", "origin", "depth", "under"].filter((name) =>
    values.get(name),
  );
  return (
    <Empty title="Nothing in the memory fits this question.">
      {filters.length > 0 ? (
        <button
          type="button"
          className="button"
          onClick={() => change(Object.fromEntries(filters.map((name) => [name, undefined])))}
        >
          Search without filters
        </button>
      ) : (
        <p>
          Try the words that were used at the time, or fewer of them. Sessions are searchable as soon as they
          are captured.
        </p>
      )}
    </Empty>
  );
}

/** Return the words of a question that are worth marking. */
function wordsOf(question: string): string[] {
  const common = new Set([
    "the",
    "and",
    "for",
    "was",
    "were",
    "did",
    "does",
    "how",
    "what",
    "why",
    "who",
    "when",
    "where",
    "which",
    "with",
    "that",
    "this",
    "are",
    "our",
    "you",
    "your",
    "have",
    "has",
    "not",
  ]);
  return (question.toLowerCase().match(/[\p{L}\p{N}_.-]+/gu) ?? []).filter((word) => !common.has(word));
}
