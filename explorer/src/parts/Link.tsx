/** A link to a page of the explorer. */
import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { navigate } from "../router";

type Properties = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string; row?: boolean };

export function Link({ to, row, onClick, ...rest }: Properties) {
  function follow(event: MouseEvent<HTMLAnchorElement>): void {
    onClick?.(event);
    if (
      event.defaultPrevented ||
      event.button ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    navigate(to);
  }
  return <a href={to} onClick={follow} data-row={row ? "" : undefined} {...rest} />;
}
