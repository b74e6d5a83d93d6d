/** What a page shows instead of data: skeletons, empty states, failures. */
import type { ReactNode } from "react";
import type { Failure } from "../api";

/** Grey rows in the place of a list that loads. */
export function Skeleton({ rows = 6, tall = false }: { rows?: number; tall?: boolean }) {
  return (
    <div className="skeleton" data-tall={tall || undefined} role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} className="skeleton-row" />
      ))}
    </div>
  );
}

/** An empty list that says how it is filled. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="empty-text">{children}</div>}
    </div>
  );
}

export function FailureNote({ failure, retry }: { failure: Failure; retry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <p className="empty-title">{failure.message}</p>
      {failure.hint && <p className="empty-text">{failure.hint}</p>}
      {retry && (
        <button type="button" className="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A command to type in a terminal. */
export function Command({ children }: { children: string }) {
  return <code className="command">{children}</code>;
}
