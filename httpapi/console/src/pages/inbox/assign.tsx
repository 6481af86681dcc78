// To whom a conversation can be given.
import { type API, path, session, useQuery } from "../../data";
import type { MenuItem } from "../../ui";

/** The addresses of the people who have a role on an agent, without one's own. */
export function useColleagues(id: string): string[] {
  const found = useQuery(path("agents", id, "admins"), { limit: 50 });
  const me = session.value?.identity?.email;
  return (found.data.value?.admins ?? []).map((a) => a.email).filter((email) => email !== me);
}

/** The entries of a menu that give a conversation to somebody; assignee is who has it: "" for nobody, null for several. */
export function assignItems(colleagues: string[], assignee: string | null, run: (what: API.Change) => unknown): MenuItem[] {
  const me = session.value?.identity?.email;
  return [
    { label: "Assign to me", icon: "UserCheck", disabled: !me || assignee === me, reason: me ? "It is yours" : "This server doesn't know who you are", run: () => run({ assignee: "me" }) },
    ...colleagues.filter((email) => email !== assignee).map((email): MenuItem => ({ label: `Assign to ${email}`, icon: "User", run: () => run({ assignee: email }) })),
    { label: "Unassign", icon: "X", disabled: assignee === "", run: () => run({ assignee: null }) },
  ];
}
