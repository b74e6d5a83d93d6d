/** Ask: one answer with citations. */
import { useState } from "react";
import type { Api } from "../api";
import { hasKeyboard } from "../keys";
import { plainLine } from "../markup";
import { projectName, useProjects } from "../me";
import { Choice } from "../parts/Chips";
import { Link } from "../parts/Link";
import { Markup } from "../parts/Markup";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { useQuery } from "../query";
import { itemPath, useParameters, withParameters } from "../router";
import "../styles/ask.css";
import { useTitle } from "../title";

const EXAMPLES = [
  "What did we decide about the database?",
  "How do I run the tests?",
  "What was the cause of the last outage?",
  "What do I prefer?",
];

const STRENGTHS: Record<string, [string, string]> = {
  strong: ["well supported", "good"],
  likely: ["probable", "good"],
  weak: ["weak", "warn"],
  none: ["no answer", "warn"],
};

export default function Ask() {
  const [values, change] = useParameters();
  const question = values.get("q") ?? "";
  const project = values.get("project") ?? "";
  const projects = useProjects();
  const [text, setText] = useState(question);
  useTitle(question || "Ask");
  const answer = useQuery<Api<"AskResult">>(
    question ? { path: "/ask", body: { query: question, ...(project ? { project } : {}) } } : null,
  );
  return (
    <div className="page ask">
      <header className="page-head">
        <h1>Ask</h1>
        <p>one answer, and the words it rests on</p>
      </header>
      <form
        className="ask-form"
        onSubmit={(event) => {
          event.preventDefault();
          change({ q: text.trim() }, false);
        }}
      >
        <input
          data-search=""
          className="field"
          autoFocus={!question && hasKeyboard}
          aria-label="Question"
          placeholder="Ask what was said, decided or learned"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" className="button primary" disabled={!text.trim()}>
          Ask
        </button>
      </form>
      <div className="chips">
        <Choice
          label="Project"
          value={project}
          options={projects.map((one) => [one.id, projectName(projects, one.id)] as const)}
          change={(chosen) => change({ project: chosen })}
        />
      </div>
      {!question && (
        <Empty title="Answers come from the memory alone.">
          <p>
            Every sentence cites what it rests on. Without a chat model the answer is quoted word for word;{" "}
            <code>lore model</code> chooses one that writes it.
          </p>
          <div className="chips">
            {EXAMPLES.map((one) => (
              <button
                key={one}
                type="button"
                className="chip"
                onClick={() => {
                  setText(one);
                  change({ q: one }, false);
                }}
              >
                {one}
              </button>
            ))}
          </div>
        </Empty>
      )}
      {answer.error && <FailureNote failure={answer.error} retry={answer.reload} />}
      {question &&
        !answer.error &&
        (answer.data && answer.data.question === question ? (
          <AnswerView answer={answer.data} />
        ) : (
          <Skeleton rows={5} />
        ))}
    </div>
  );
}

function AnswerView({ answer }: { answer: Api<"AskResult"> }) {
  const [word, tone] = STRENGTHS[answer.strength] ?? ["", ""];
  const cited = answer.citations.length ? answer.citations : answer.nearest ? [answer.nearest] : [];
  return (
    <article className="answer" aria-live="polite">
      <AnswerText answer={answer} />
      <p className="meta">
        <span className="tag" data-tone={tone}>
          {word}
        </span>
        <span>
          {answer.written_by === "offline" ? "quoted from the memory" : `written by ${answer.written_by}`}
        </span>
        <Link to={withParameters("/", { q: answer.question })}>See all hits</Link>
      </p>
      {answer.notice && <p className="notice">{answer.notice}</p>}
      {cited.length > 0 && (
        <section className="section" aria-labelledby="cited">
          <div className="section-head">
            <h2 id="cited">{answer.citations.length ? "Sources" : "The nearest that is known"}</h2>
          </div>
          <ol className="citations">
            {cited.map((one) => (
              <CitationRow key={one.id} citation={one} />
            ))}
          </ol>
        </section>
      )}
    </article>
  );
}

/** A quotation of an answer that nobody wrote, with its number and what is to be said of it. */
const QUOTATION = /“([^”]*)” \[(\d{1,3})\]([^“\n]*)/g;

/** Quotations stand apart, each with a link to its source; a written answer is text. */
function AnswerText({ answer }: { answer: Api<"AskResult"> }) {
  const quotations = answer.written_by === "offline" ? [...answer.text.matchAll(QUOTATION)] : [];
  if (!quotations.length) return <Markup text={answer.text} />;
  return (
    <div className="quotations">
      {quotations.map(([, text, number, note], at) => (
        <blockquote key={at} className="quotation">
          <p dir="auto">
            {`“${text}” `}
            <a className="citation-mark" href={`#citation-${number}`} aria-label={`Source ${number}`}>
              {number}
            </a>
          </p>
          {note?.trim() && <p className="citation-note">{note.trim().replace(/^\((.*)\)$/, "$1")}</p>}
        </blockquote>
      ))}
    </div>
  );
}

function CitationRow({ citation }: { citation: Api<"Citation"> }) {
  return (
    <li id={`citation-${citation.number}`}>
      <Link
        row
        to={itemPath(citation)}
        className="citation"
        data-outdated={citation.is_outdated || undefined}
      >
        <span className="citation-number">{citation.number}</span>
        <span className="citation-text" dir="auto">
          {citation.text}
        </span>
        {citation.note && <span className="citation-note">{citation.note}</span>}
        <span className="meta">
          <span>{citation.said_by}</span>
          {citation.title && <span>{plainLine(citation.title)}</span>}
          {citation.project && <span>{citation.project}</span>}
          <Time at={citation.created_at} />
        </span>
      </Link>
    </li>
  );
}
