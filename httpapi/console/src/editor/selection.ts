// The selected node in the address.
import { useEffect, useRef } from "preact/hooks";

import { route, setQuery } from "../data";
import type { Editor } from "./state";

/**
 * Keeps the selected node in the address, and selects the node of an address that is opened. The returned ref has the
 * node that the page itself put into the address last; it is not selected again, since by then another may be.
 */
export function useSelectionInAddress(editor: Editor) {
  const requested = route.value.query.get("node") ?? "";
  const written = useRef("");
  useEffect(() => {
    if (requested === written.current) return;
    written.current = requested;
    if (requested && editor.node(requested)) editor.select([requested]);
  }, [requested]);
  const selected = editor.selectedNode.value?.id ?? "";
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      if (requested) return;
    }
    if ((route.value.query.get("node") ?? "") === selected) return;
    written.current = selected;
    setQuery({ node: selected || null, at: null });
  }, [selected]);
  return written;
}
