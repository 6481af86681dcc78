// The cell of a grid that has the focus, and the cells that are selected with it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { areaOf, type CellPosition } from "./cells";

/** Keeps the focused cell of a grid and the opposite corner of its selection; a cell that is edited keeps the focus. */
export function useCursor(rowCount: number, columnCount: number, editing: boolean) {
  const [cell, setCell] = useState<CellPosition>({ row: 0, column: 0 });
  const [anchor, setAnchor] = useState(cell);
  const frame = useRef<HTMLDivElement>(null);
  const needsFocus = useRef(false); // the next render moves the focus to the cell
  const extendNext = useRef(false); // the next cell that gets the focus extends the selection
  const pressedAgain = useRef(false); // the cell that is pressed had the focus before
  useLayoutEffect(() => {
    if (!needsFocus.current || editing) return;
    needsFocus.current = false;
    frame.current?.querySelector<HTMLElement>(`[data-at="${cell.row},${cell.column}"]`)?.focus();
  });

  /** Makes a cell the whole selection. */
  const select = (row: number, column: number) => {
    setCell({ row, column });
    setAnchor({ row, column });
  };

  /** Moves the focus to the nearest cell there is; the selection follows or is extended. */
  const move = (row: number, column: number, extend = false) => {
    const target = {
      row: Math.max(0, Math.min(rowCount - 1, row)),
      column: Math.max(0, Math.min(columnCount - 1, column)),
    };
    needsFocus.current = true;
    extendNext.current = extend;
    setCell(target);
    if (!extend) setAnchor(target);
  };

  const isAt = (row: number, column: number) => cell.row === row && cell.column === column;

  return {
    ...cell,
    frame,
    area: areaOf({ row: Math.min(anchor.row, rowCount - 1), column: anchor.column }, cell),
    isAt,
    pressedAgain,
    select,
    move,
    keepFocus: () => {
      needsFocus.current = true;
    },
    selectFrom: (row: number, column: number) => setAnchor({ row, column }),
    collapse: () => setAnchor(cell),

    /** Handles a press on a cell. */
    onPress: (e: MouseEvent, row: number, column: number) => {
      const focused = isAt(row, column);
      extendNext.current = e.shiftKey;
      pressedAgain.current = focused && document.activeElement === e.currentTarget;
      if (focused && !e.shiftKey) setAnchor({ row, column });
    },

    /** Handles the pointer entering a cell: with its button down it extends the selection. */
    onDrag: (e: MouseEvent, row: number, column: number) => {
      if (e.buttons === 1 && frame.current?.contains(document.activeElement)) move(row, column, true);
    },

    /** Handles a cell that gets the focus. */
    onFocus: (row: number, column: number) => {
      if (!isAt(row, column)) {
        setCell({ row, column });
        if (!extendNext.current) setAnchor({ row, column });
      }
      extendNext.current = false;
    },
  };
}
