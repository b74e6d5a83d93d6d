/** The address of a message leads to its session. */
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
  if (message.error?.status === 404) return <Empty title="There is no message with this id."><p>It may have been forgotten.</p></Empty>;
  if (message.error) return <FailureNote failure={message.error} retry={message.reload} />;
  return <Skeleton rows={6} />;
}
