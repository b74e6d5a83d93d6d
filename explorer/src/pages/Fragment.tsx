/** One fragment: what it says, where it is from, what it was, and what hangs on it. */
import { useEffect, useState } from "react";
import type { Api } from "../api";
import { correct } from "../corrections";
import { formatShare, shortId, words } from "../format";
import { useKeys } from "../keys";
import { plainLine } from "../markup";
import { projectName, useProjects, useRefusal } from "../me";
import { ForgetDialog } from "../parts/ForgetDialog";
import { FragmentEditor, type Editing } from "../parts/FragmentEditor";
import { FragmentHistory } from "../parts/FragmentHistory";
import { FragmentLinks } from "../parts/FragmentLinks";
import { FragmentSources } from "../parts/FragmentSources";
import { Icon } from "../parts/Icon";
import { Kind } from "../parts/Kind";
import { Link } from "../parts/Link";
import { Markup } from "../parts/Markup";
import { Payload } from "../parts/Payload";
import { RelevanceChart } from "../parts/RelevanceChart";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { rememberPage } from "../recent";
import { paths, useParameters, withParameters } from "../router";
import { useQuery } from "../query";
import "../styles/fragment.css";
import { useTitle } from "../title";

type Reading = Api<"Reading">;
type Fragment = Api<"Fragment">;

export default function FragmentPage({ id }: { id: string }) {
  const reading = useQuery<Reading>({ path: `/fragments/${encodeURIComponent(id)}` });
  const title = reading.data ? plainLine(reading.data.title || reading.data.text) : "";
  useTitle(title || "Fragment");
  useEffect(() => {
    if (title) rememberPage({ path: paths.fragment(id), title, kind: "fragment" });
  }, [id, title]);
  if (reading.error?.status === 404)
    return (
      <Empty title="There is no fragment with this id.">
        <p>
          It may have been forgotten. <Link to="/">Search the memory</Link>
        </p>
      </Empty>
    );
  if (reading.error && !reading.data) return <FailureNote failure={reading.error} retry={reading.reload} />;
  if (!reading.data) return <Skeleton rows={8} />;
  const { fragment } = reading.data;
  if (!fragment)
    return (
      <Empty title="This is not a fragment.">
        <Link to={paths.message(id)}>Show it in its session</Link>
      </Empty>
    );
  return <FragmentView reading={reading.data} fragment={fragment} title={title} />;
}

function FragmentView({ reading, fragment, title }: { reading: Reading; fragment: Fragment; title: string }) {
  const [values, change] = useParameters();
  const refusal = useRefusal("write");
  const [editing, setEditing] = useState<Editing | "">(values.get("edit") && !refusal ? "update" : "");
  function close(): void {
    setEditing("");
    change({ edit: undefined });
  }
  const rest = withoutTitle(fragment.content, title);
  return (
    <article className="page fragment">
      <Breadcrumb reading={reading} />
      <header>
        <p className="meta">
          <Kind kind={fragment.kind} />
          <span>version {fragment.version}</span>
          <Time at={fragment.updated_at} />
          <code>{shortId(fragment.id)}</code>
        </p>
        <h1>{title}</h1>
        <Notices reading={reading} fragment={fragment} />
      </header>
      <div className="fragment-columns">
        <div className="fragment-main">
          {editing ? (
            <FragmentEditor key={editing} fragment={fragment} editing={editing} close={close} />
          ) : (
            <>
              {rest && <Markup text={rest} />}
              <Actions fragment={fragment} deleted={Boolean(reading.deleted)} edit={setEditing} />
            </>
          )}
          <Payload payload={fragment.payload} known={[title, fragment.content]} />
          <FragmentSources id={fragment.id} />
          <FragmentLinks reading={reading} />
          <FragmentHistory id={fragment.id} />
        </div>
        <aside className="fragment-aside" aria-label="About this fragment">
          <RelevanceChart id={fragment.id} />
          <Facts fragment={fragment} session={reading.session ?? undefined} />
        </aside>
      </div>
    </article>
  );
}

/** Return a text without its first line, if that is the title. */
function withoutTitle(text: string, title: string): string {
  const [first = "", ...others] = text.trim().split("\n");
  return plainLine(first) === title ? others.join("\n").trim() : text;
}

function Breadcrumb({ reading }: { reading: Reading }) {
  return (
    <nav className="breadcrumb" aria-label="Place in the tree">
      <Link to="/">Memory</Link>
      {reading.parent && (
        <>
          <Icon name="right" />
          <Link to={paths.fragment(reading.parent.id)}>{plainLine(reading.parent.title)}</Link>
        </>
      )}
    </nav>
  );
}

/** Agents get what is trusted less only if they ask for it; the review queue has it, too. */
const UNASKED_TRUST = 2;

const HOW: Record<string, string> = { partly: "Partly replaced by", may_replace: "May be replaced by" };

function Notices({ reading, fragment }: { reading: Reading; fragment: Fragment }) {
  const { replaced } = reading;
  return (
    <>
      {reading.deleted && (
        <p className="notice">
          <Icon name="trash" />
          This fragment is deleted. No agent gets it.
        </p>
      )}
      {replaced && (
        <p className="notice">
          <Icon name="replace" />
          <span>
            {HOW[replaced.how] ?? "Replaced by"}{" "}
            <Link to={paths.fragment(replaced.by_id)}>{plainLine(replaced.by)}</Link>,{" "}
            <Time at={replaced.at} />
          </span>
        </p>
      )}
      {fragment.trust < UNASKED_TRUST && (
        <p className="notice">
          <Icon name="warning" />
          Not trusted: it is from {fragment.origin}. No agent gets it unasked until you approve it.
        </p>
      )}
    </>
  );
}

type ActionProperties = { fragment: Fragment; deleted: boolean; edit: (editing: Editing) => void };

function Actions({ fragment, deleted, edit }: ActionProperties) {
  const [forgetting, setForgetting] = useState(false);
  const refusal = useRefusal("write");
  const adminRefusal = useRefusal("admin");
  const off = Boolean(refusal) || deleted;
  const remove = () => void correct(fragment.id, "delete");
  useKeys(off ? {} : { e: () => edit("update"), s: () => edit("supersede"), d: remove });
  return (
    <div className="button-row" role="group" aria-label="Correct this fragment">
      <button type="button" className="button" disabled={off} title={refusal} onClick={() => edit("update")}>
        <Icon name="edit" />
        Edit <kbd>e</kbd>
      </button>
      <button
        type="button"
        className="button"
        disabled={off}
        title={refusal}
        onClick={() => edit("supersede")}
      >
        <Icon name="replace" />
        Replace <kbd>s</kbd>
      </button>
      <button
        type="button"
        className="button"
        disabled={deleted || Boolean(adminRefusal)}
        title={adminRefusal || "It is right: trust it"}
        onClick={() => void correct(fragment.id, "approve")}
      >
        <Icon name="check" />
        Approve
      </button>
      <button
        type="button"
        className="button"
        disabled={deleted || Boolean(adminRefusal)}
        title={adminRefusal || "It is wrong, or no rule"}
        onClick={() => void correct(fragment.id, "reject")}
      >
        <Icon name="close" />
        Not a rule
      </button>
      <button type="button" className="button" disabled={off} title={refusal} onClick={remove}>
        <Icon name="trash" />
        Delete <kbd>d</kbd>
      </button>
      <button
        type="button"
        className="button plain danger"
        disabled={Boolean(adminRefusal)}
        title={adminRefusal || "Delete it without a trace"}
        onClick={() => setForgetting(true)}
      >
        Forget…
      </button>
      {forgetting && <ForgetDialog id={fragment.id} close={() => setForgetting(false)} />}
    </div>
  );
}

const ORIGINS: Record<string, string> = {
  user: "the person",
  assistant: "the assistant",
  tool: "a tool's output",
  web: "a web page",
  repo: "a repository",
  peer: "a peer",
};

function Facts({ fragment, session }: { fragment: Fragment; session?: Api<"Session"> }) {
  const projects = useProjects();
  const project = projectName(projects, fragment.project_id);
  return (
    <dl className="facts">
      <dt>Said by</dt>
      <dd>{ORIGINS[fragment.origin] ?? fragment.origin}</dd>
      <dt>Confidence</dt>
      <dd>{formatShare(fragment.confidence)}</dd>
      <dt>Importance</dt>
      <dd>{fragment.importance.toFixed(2)}</dd>
      <dt>Project</dt>
      <dd>
        {project ? (
          <Link to={withParameters("/", { project: fragment.project_id ?? "" })}>{project}</Link>
        ) : (
          "all projects"
        )}
      </dd>
      {session && (
        <>
          <dt>Session</dt>
          <dd>
            <Link to={paths.session(session.id)}>{plainLine(session.title) || session.agent}</Link>
          </dd>
        </>
      )}
      <dt>Learned</dt>
      <dd>
        <Time at={fragment.created_at} />
      </dd>
      {fragment.valid_from && (
        <>
          <dt>Holds from</dt>
          <dd>
            <Time at={fragment.valid_from} />
          </dd>
        </>
      )}
      {fragment.valid_to && (
        <>
          <dt>Holds until</dt>
          <dd>
            <Time at={fragment.valid_to} />
          </dd>
        </>
      )}
      <dt>Depth</dt>
      <dd>{["broad", "concept", "fact", "detail"][fragment.depth] ?? fragment.depth}</dd>
      <dt>Kind</dt>
      <dd>{words(fragment.kind)}</dd>
      <dt>Read</dt>
      <dd>
        {fragment.access_count ? (
          <>
            {fragment.access_count} ×
            {fragment.last_accessed && (
              <>
                , last <Time at={fragment.last_accessed} />
              </>
            )}
          </>
        ) : (
          "never yet"
        )}
      </dd>
    </dl>
  );
}
