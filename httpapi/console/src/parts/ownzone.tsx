// Offers this device's time zone to an agent that has another.
import { mayEdit } from "../data";
import { Button } from "../ui";
import { deviceZone } from "./zone";

/** A button that uses this device's zone, unless the agent has it. */
export function OwnZone({ zone, use }: { zone: string; use: (zone: string) => void }) {
  const own = deviceZone();
  if (zone === own || !mayEdit.value) return null;
  return <Button onClick={() => use(own)}>{`Use ${own}, the time zone of this device`}</Button>;
}
