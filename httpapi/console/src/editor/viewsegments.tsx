// The choice between the two views of a graph.
import { Icon, Segments } from "../ui";

type ViewSegmentsProps = { outline: boolean; setOutline: (outline: boolean) => void };

/** Chooses whether the graph is shown as a canvas or as an outline. */
export const ViewSegments = ({ outline, setOutline }: ViewSegmentsProps) => (
  <Segments
    label="View"
    value={outline ? "outline" : "canvas"}
    options={[
      ["canvas", <Icon name="Workflow" size={16} label="Canvas" />],
      ["outline", <Icon name="ListTree" size={16} label="Outline" />],
    ]}
    onChange={(view) => setOutline(view === "outline")}
  />
);
