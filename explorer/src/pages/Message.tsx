/** The address of a message leads to its session; that of a fragment, which a citation may be, to its page. */
import { useEffect } from "react";
import type { Api } from "../api";
import { Empty, FailureNote, Skeleton } from "../parts/states";
import { useQuery } from "../query";
import { navigate, paths } from "../router";

export default function MessagePage({ id }: { id: string }) {
  const message = useQuery<Api<"Message">>({ path: `/messages/${encodeURIComponent(id)}` });
  const data = message.data;
  useEffect(() => {
    if (data) navigate(paths.session(data.session_id, { message: data.id, at: String(data.ordinal) }), { replace: true });
  }, [data]);
  const isMissing = message.error?.status === 404;
  const fragment = useQuery<Api<"Reading">>(isMissing ? { path: `/fragments/${encodeURIComponent(id)}` } : null);
  const isFragment = Boolean(fragment.data);
  useEffect(() => {
    if (isFragment) navigate(paths.fragment(id), { replace: true });
  }, [id, isFragment]);
  if (isMissing && fragment.error) return <Empty title="There is no message with this id."><p>It may have been forgotten.</p></Empty>;
  if (message.error && !isMissing) return <FailureNote failure={message.error} retry={message.reload} />;
  return <Skeleton rows={6} />;
}
