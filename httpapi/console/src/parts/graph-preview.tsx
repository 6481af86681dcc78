// A small picture of a graph that cannot be changed; on a phone a list.
import { catalog, typeOf } from "../editor/catalog";
import { Icon } from "../ui";

type Node = { id: string; type: string; position?: { x: number; y: number }; data?: Record<string, unknown> };
type Edge = { source: string; target: string; sourceHandle?: string };

const width = 212;
const height = 52;
const across = 1.8; // of the distances on the canvas; the picture goes down, where that goes to the right
const down = 0.31;

const cut = (text: string) => (text.length > 22 ? `${text.slice(0, 21)}…` : text);

/** The edges, one for each pair of nodes. */
function joined(edges: Edge[]): Edge[] {
  const pairs = new Map<string, Edge>();
  for (const e of edges) {
    const key = `${e.source} ${e.target}`;
    const same = pairs.get(key);
    pairs.set(
      key,
      same ? { ...same, sourceHandle: [same.sourceHandle, e.sourceHandle].filter(Boolean).join(", ") } : e,
    );
  }
  return [...pairs.values()];
}

/** A small picture of a graph. */
export function GraphPreview({ nodes, edges }: { nodes: Node[]; edges: Edge[] }) {
  void catalog.value; // labels and icons come with it
  const place = new Map(nodes.map((n) => [n.id, { x: (n.position?.y ?? 0) * across, y: (n.position?.x ?? 0) * down }]));
  const right = Math.max(...[...place.values()].map((p) => p.x)) + width;
  const bottom = Math.max(...[...place.values()].map((p) => p.y)) + height;
  return (
    <>
      <div class="graph-preview">
        <svg
          viewBox={`-6 -6 ${right + 56} ${bottom + 12}`}
          width={right + 56}
          height={bottom + 12}
          role="img"
          aria-label={`A graph of ${nodes.length} nodes`}
        >
          {joined(edges).map((e) => (
            <PreviewEdge
              key={`${e.source} ${e.target}`}
              from={place.get(e.source)!}
              to={place.get(e.target)!}
              way={e.sourceHandle}
              right={right}
            />
          ))}
          {nodes.map((n) => {
            const p = place.get(n.id)!;
            const type = typeOf(n.type);
            return (
              <g
                key={n.id}
                class={`preview-node group-${(type?.group ?? "none").toLowerCase()}`}
                transform={`translate(${p.x} ${p.y})`}
              >
                <rect width={width} height={height} rx={9} />
                <g transform="translate(12 16)" class="preview-icon">
                  <Icon name={type?.icon ?? "CircleHelp"} size={20} />
                </g>
                <text x={42} y={23}>
                  {cut(String(n.data?.label ?? n.id))}
                </text>
                <text x={42} y={40} class="preview-type">
                  {type?.label ?? n.type}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
      <ol class="preview-list">
        {nodes.map((n) => (
          <li key={n.id}>
            {String(n.data?.label ?? n.id)} <span class="muted small">{typeOf(n.type)?.label ?? n.type}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

type Point = { x: number; y: number };

function PreviewEdge({ from, to, way, right }: { from: Point; to: Point; way?: string; right: number }) {
  const [x1, y1, x2, y2] = [from.x + width / 2, from.y + height, to.x + width / 2, to.y];
  if (y2 < y1) {
    // it leads back, beside the nodes
    const [ya, yb] = [from.y + height / 2, to.y + height / 2];
    return (
      <g class="preview-edge">
        <path d={`M${from.x + width} ${ya} C${right + 44} ${ya} ${right + 44} ${yb} ${to.x + width} ${yb}`} />
      </g>
    );
  }
  return (
    <g class="preview-edge">
      <path d={`M${x1} ${y1} C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`} />
      {way && (
        <text x={x2 + 5} y={y2 - 5}>
          {way}
        </text>
      )}
    </g>
  );
}
