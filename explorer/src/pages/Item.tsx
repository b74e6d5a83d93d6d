/** The address of a message leads to its session; citations use it for items of any type. */
import { useEffect } from "react";
import type { Api } from "../api";
import { Link } from "../parts/Link";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { useQuery } from "../query";
import { navigate, paths } from "../router";

export default function ItemPage({ id }: { id: string }) {
  const name = encodeURIComponent(id);
  const message = useQuery<Api<"Message">>({ path: `/messages/${name}` });
  const fragment = useQuery<Api<"Reading">>(
    message.error?.status === 404 ? { path: `/fragments/${name}` } : null,
  );
  const session = useQuery<Api<"SessionPage">>(
    fragment.error?.status === 404 ? { path: `/sessions/${name}` } : null,
  );
  const target = targetOf(message.data, fragment.data, session.data);
  useEffect(() => {
    if (target) navigate(target, { replace: true });
  }, [target]);
  const failure = [message.error, fragment.error, session.error].find((one) => one && one.status !== 404);
  if (failure) return <FailureNote failure={failure} retry={message.reload} />;
  if (session.error)
    return (
      <Empty title="Nothing has this id.">
        <p>
          It may have been forgotten. <Link to="/">Search the memory</Link>
        </p>
      </Empty>
    );
  return <Skeleton rows={6} />;
}

function targetOf(message?: Api<"Message">, fragment?: Api<"Reading">, session?: Api<"SessionPage">): string {
  if (message) return paths.session(message.session_id, { message: message.id, at: String(message.ordinal) });
  if (fragment) return paths.fragment(fragment.id);
  return session ? paths.session(session.session.id) : "";
}
