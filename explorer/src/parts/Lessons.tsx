/** What tasks taught: errors with their resolutions, and skills. */
import { useState } from "react";
import type { Outcome } from "../api";
import { formatShare } from "../format";
import { plainLine } from "../markup";
import { useQuery } from "../query";
import { paths } from "../router";
import { Kind } from "./Kind";
import { Link } from "./Link";
import { Markup } from "./Markup";
import { Command, Empty, FailureNote, Skeleton } from "./states";
import { Time } from "./Time";
import { Dialog } from "./Dialog";

export function Lessons() {
  const review = useQuery<Outcome<"ReviewResult">>({
    path: "/tools/review_lessons",
    body: { everywhere: true, limit: 50 },
  });
  const learnings = useQuery<Outcome<"LearningsResult">>({
    path: "/tools/learnings",
    body: { everywhere: true, limit: 50 },
  });
  if (learnings.error) return <FailureNote failure={learnings.error} retry={learnings.reload} />;
  if (!learnings.data) return <Skeleton rows={6} />;
  const toReview = review.data?.data.lessons ?? [];
  if (!learnings.data.data.learnings.length && !toReview.length)
    return (
      <Empty title="No lesson has been learned yet.">
        <p>An error and what resolved it become a lesson when a session ends.</p>
      </Empty>
    );
  return (
    <>
      {toReview.length > 0 && (
        <section aria-label="To be looked at">
          <div className="section-head">
            <h2>To be looked at</h2>
          </div>
          <ul className="rows">
            {toReview.map((one) => (
              <li key={one.id}>
                <Link row to={paths.fragment(one.id)} className="row">
                  <Kind kind={one.kind} />
                  <span className="row-title">{one.title}</span>
                  <span className="row-end">{one.reason}</span>
                </Link>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section className="section" aria-label="Errors and what resolved them">
        <div className="section-head">
          <h2>Errors and what resolved them</h2>
        </div>
        <ul className="rows">
          {learnings.data.data.learnings.map((one, at) => (
            <li key={at}>
              <Link row to={paths.fragment(one.episode_id)} className="lesson">
                <span className="meta">
                  <span className="tag" data-tone="bad">
                    {one.type}
                  </span>
                  <Time at={one.at} />
                </span>
                <span className="lesson-text">{one.message}</span>
                {one.resolution && <span className="lesson-resolution">{one.resolution}</span>}
              </Link>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

export function Skills() {
  const skills = useQuery<Outcome<"SkillsResult">>({
    path: "/tools/skills",
    body: { everywhere: true, limit: 50 },
  });
  const [shown, setShown] = useState("");
  if (skills.error) return <FailureNote failure={skills.error} retry={skills.reload} />;
  if (!skills.data) return <Skeleton rows={6} />;
  if (!skills.data.data.skills.length)
    return (
      <Empty title="There is no skill yet.">
        <p>
          A skill is a page with steps that worked. Agents write them with <code>skill_write</code>; you can
          too:
        </p>
        <Command>lore skills --help</Command>
      </Empty>
    );
  return (
    <>
      <ul className="rows">
        {skills.data.data.skills.map((one) => (
          <li key={one.id}>
            <button type="button" data-row="" className="row row-button" onClick={() => setShown(one.id)}>
              <span className="skill-name">{plainLine(one.name)}</span>
              <span className="row-title quiet">{one.description}</span>
              <span className="row-end">{formatShare(one.confidence)}</span>
            </button>
          </li>
        ))}
      </ul>
      {shown && <SkillPage id={shown} close={() => setShown("")} />}
    </>
  );
}

function SkillPage({ id, close }: { id: string; close: () => void }) {
  const skill = useQuery<Outcome<"SkillPageResult">>({ path: "/tools/skill_read", body: { skill: id } });
  return (
    <Dialog label="Skill" close={close}>
      <header className="dialog-head">
        <h2>Skill</h2>
        <span className="button-row">
          <Link to={paths.fragment(id)} className="button">
            Open
          </Link>
          <button type="button" className="button" onClick={close}>
            Close
          </button>
        </span>
      </header>
      <div className="dialog-body">
        {skill.error ? (
          <FailureNote failure={skill.error} />
        ) : skill.data ? (
          <Markup text={skill.data.data.page} />
        ) : (
          <Skeleton />
        )}
      </div>
    </Dialog>
  );
}
