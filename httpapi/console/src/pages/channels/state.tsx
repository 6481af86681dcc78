// How the state of a channel is shown.
import type { API } from "../../data";
import { Badge } from "../../ui";

const stateNames: Record<string, string> = { inactive: "not verified", pending_verification: "not verified" };

/** Whether a channel can be used. */
export const ChannelState = ({ g }: { g: API.Gateway }) => (
  <Badge tone={g.status === "active" ? "good" : g.status === "error" ? "bad" : "warn"}>
    {stateNames[g.status] ?? g.status}
  </Badge>
);
