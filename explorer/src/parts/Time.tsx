/** A time, relative to now, with the exact one in its title. */
import { formatAgo, formatTime } from "../format";

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatTime(at)}>
      {formatAgo(at)}
    </time>
  );
}
