// Places the nodes of a graph in layers from top to bottom, after Sugiyama:
// edges that lead back are set aside, each node comes below all that lead to
// it, nodes of a layer are ordered by where their neighbours stand, and then
// moved as close to them as the order allows. Functions of values only.

export const box = { width: 176, height: 50, gap: 28, rise: 52 };

/** Where everything stands: nodes by id as {x, y}, their centre, and edges with the points they go through. */
export function layout(nodes, edges) {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const links = edges.filter((e) => known.has(e.source) && known.has(e.target)).map((edge) => ({ edge, from: edge.source, to: edge.target }));
  const back = leadingBack([...known.values()], links);
  const forward = links.filter((l) => !back.has(l));
  const layers = inLayers([...known.keys()], forward);
  layers.forEach((layer, depth) => layer.forEach((cell) => { cell.y = depth * (box.height + box.rise) + box.height / 2; }));
  order(layers);
  place(layers);
  const cells = new Map(layers.flat().filter((c) => c.id !== undefined).map((c) => [c.id, c]));
  const side = Math.max(0, ...[...back].map((l) => bulge(cells.get(l.from), cells.get(l.to))));
  return {
    width: Math.max(0, ...layers.flat().map((c) => c.x + c.width / 2)) + side,
    height: layers.length * (box.height + box.rise) - box.rise,
    nodes: cells,
    edges: links.map((l) => ({ ...l, back: back.has(l), points: [cells.get(l.from), ...(l.through ?? []), cells.get(l.to)] })),
  };
}

/** How far an edge that leads back swings out to the right. */
export const bulge = (from, to) => 36 + Math.min(90, Math.abs(from.y - to.y) / 6);

/** Links by where they come from. */
function leaving(links) {
  const out = new Map();
  for (const l of links) out.set(l.from, [...(out.get(l.from) ?? []), l]);
  return out;
}

/** The links that a walk in depth finds leading to where it came from. */
function leadingBack(nodes, links) {
  const out = leaving(links);
  const state = new Map();
  const back = new Set();
  for (const root of [...nodes].sort((a, b) => (b.type === "trigger") - (a.type === "trigger"))) {
    if (state.has(root.id)) continue;
    const path = [{ id: root.id, next: 0 }];
    state.set(root.id, "open");
    while (path.length) {
      const top = path.at(-1);
      const link = out.get(top.id)?.[top.next++];
      if (!link) {
        state.set(top.id, "done");
        path.pop();
      } else if (state.get(link.to) === "open") back.add(link);
      else if (!state.has(link.to)) {
        state.set(link.to, "open");
        path.push({ id: link.to, next: 0 });
      }
    }
  }
  return back;
}

/** Layers of cells: nodes, and for links over several layers a thin cell in each between. */
function inLayers(ids, links) {
  const depth = new Map(ids.map((id) => [id, 0]));
  const left = new Map(ids.map((id) => [id, 0]));
  for (const l of links) left.set(l.to, left.get(l.to) + 1);
  const out = leaving(links);
  const ready = ids.filter((id) => !left.get(id));
  for (const id of ready) {
    for (const { to } of out.get(id) ?? []) {
      depth.set(to, Math.max(depth.get(to), depth.get(id) + 1));
      left.set(to, left.get(to) - 1);
      if (!left.get(to)) ready.push(to);
    }
  }
  const layers = [];
  const add = (cell, at) => (layers[at] ??= []).push(cell);
  const cells = new Map(ids.map((id) => [id, { id, width: box.width, up: [], down: [] }]));
  for (const id of ready) add(cells.get(id), depth.get(id));
  for (const l of links) {
    l.through = [];
    for (let at = depth.get(l.from) + 1; at < depth.get(l.to); at++) {
      const cell = { width: 8, up: [], down: [] };
      l.through.push(cell);
      add(cell, at);
    }
    const chain = [cells.get(l.from), ...l.through, cells.get(l.to)];
    chain.slice(1).forEach((cell, i) => { cell.up.push(chain[i]); chain[i].down.push(cell); });
  }
  return layers;
}

const mean = (cells, of, fallback) => (cells.length ? cells.reduce((sum, c) => sum + of(c), 0) / cells.length : fallback);

const number = (layer) => layer.forEach((cell, i) => { cell.rank = i; });

/** Orders each layer by the mean place of its neighbours, down and up again,
 * and keeps the order in which the fewest edges cross. */
function order(layers) {
  layers.forEach(number);
  let best = { crossed: crossings(layers), ranks: layers.map((layer) => [...layer]) };
  for (let sweep = 0; sweep < 16 && best.crossed > 0; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers.slice(1) : layers.slice(0, -1).reverse()) {
      for (const cell of layer) cell.wish = mean(down ? cell.up : cell.down, (c) => c.rank, cell.rank);
      layer.sort((a, b) => a.wish - b.wish);
      number(layer);
    }
    const crossed = crossings(layers);
    if (crossed < best.crossed) best = { crossed, ranks: layers.map((layer) => [...layer]) };
  }
  layers.forEach((layer, i) => { layer.splice(0, layer.length, ...best.ranks[i]); number(layer); });
}

/** How many pairs of edges between neighbouring layers cross: each that ends
 * to the left of one that began further left. */
function crossings(layers) {
  let crossed = 0;
  for (const layer of layers) {
    const ends = layer.flatMap((cell) => cell.down.map((c) => c.rank).sort((a, b) => a - b));
    const seen = [];
    for (const end of ends) {
      let [low, high] = [0, seen.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (seen[middle] > end) high = middle; else low = middle + 1;
      }
      crossed += seen.length - low;
      seen.splice(low, 0, end);
    }
  }
  return crossed;
}

/** Moves cells towards their neighbours, keeping order and distance. */
function place(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const cell of layer) {
      cell.offset = x + cell.width / 2;
      cell.x = cell.offset;
      x += cell.width + box.gap;
    }
    for (const cell of layer) cell.x -= x / 2;
  }
  for (let sweep = 0; sweep < 12; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      for (const cell of layer) cell.wish = mean(down ? cell.up : cell.down, (c) => c.x, cell.x);
      settle(layer);
    }
  }
  const first = Math.min(...layers.flat().map((c) => c.x - c.width / 2));
  for (const cell of layers.flat()) cell.x -= first;
}

/** The places nearest to the wishes, in the sense of least squares, that keep
 * the order: those that crowd each other are pooled and share their mean. */
function settle(layer) {
  const pools = [];
  for (const cell of layer) {
    pools.push({ sum: cell.wish - cell.offset, cells: [cell] });
    while (pools.length > 1 && pools.at(-2).sum / pools.at(-2).cells.length > pools.at(-1).sum / pools.at(-1).cells.length) {
      const last = pools.pop();
      pools.at(-1).sum += last.sum;
      pools.at(-1).cells.push(...last.cells);
    }
  }
  for (const { sum, cells } of pools) for (const cell of cells) cell.x = sum / cells.length + cell.offset;
}
