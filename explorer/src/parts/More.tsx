/** The end of a paged list: loads more when it comes into view. */
import { useEffect, useRef } from "react";

export function More({ more, loading }: { more?: () => void; loading: boolean }) {
  const end = useRef<HTMLButtonElement>(null);
  const latest = useRef(more);
  useEffect(() => {
    latest.current = more;
  });
  const present = Boolean(more);
  useEffect(() => {
    const button = end.current;
    if (!button) return undefined;
    const observer = new IntersectionObserver(
      (seen) => seen.some((one) => one.isIntersecting) && latest.current?.(),
      { rootMargin: "600px" },
    );
    observer.observe(button);
    return () => observer.disconnect();
  }, [present, loading]);
  if (!more)
    return loading ? (
      <p className="quiet more" role="status">
        Loading more…
      </p>
    ) : null;
  return (
    <button ref={end} type="button" className="button more" onClick={more}>
      Show more
    </button>
  );
}
