import { useEffect } from "react";

/** Name the window after the page. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Lore` : "Lore";
  }, [title]);
}
