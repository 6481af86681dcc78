// Rows that are selected in a list.
import { useState } from "preact/hooks";

/** The ids selected in what is listed at an address; another address begins with none. */
export function useSelection(address: string): [string[], (ids: string[]) => void] {
  const [selection, set] = useState<{ address: string; ids: string[] }>({ address, ids: [] });
  return [selection.address === address ? selection.ids : [], (ids) => set({ address, ids })];
}
