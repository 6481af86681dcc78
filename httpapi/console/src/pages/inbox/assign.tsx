// To whom a conversation can be given.
import { useEffect, useState } from "preact/hooks";

import { type API, get, path, session } from "../../data";
import type { MenuItem } from "../../ui";

/** The people of an agent, asked for once in the life of the tab: roles seldom change. */
const people = new Map<string, Promise<string[]>>();

function peopleOf(id: string) {
  let found = people.get(id);
  if (!found) {
    found = get(path("agents", id, "admins"), { limit: 50 }).then(({ admins }) => admins.map((a) => a.email));
    people.set(id, found);
    found.catch(() => people.delete(id));
  }
  return found;
}

/** The addresses of the people who have a role on an agent, without one's own. */
export function useColleagues(id: string): string[] {
  const [list, setList] = useState<string[]>([]);
  useEffect(() => {
    peopleOf(id).then(setList, () => {});
  }, [id]);
  const me = session.value?.identity?.email;
  return list.filter((email) => email !== me);
}

/** The entries of a menu that assign a conversation; assignee is who has it: "" for no one, null for several. */
export function assignItems(
  colleagues: string[],
  assignee: string | null,
  run: (what: API.Change) => unknown,
): MenuItem[] {
  const me = session.value?.identity?.email;
  return [
    {
      label: "Assign to me",
      icon: "UserCheck",
      disabled: !me || assignee === me,
      reason: me ? "It is yours" : "This server doesn't know who you are",
      run: () => run({ assignee: "me" }),
    },
    ...colleagues
      .filter((email) => email !== assignee)
      .map((email): MenuItem => ({ label: `Assign to ${email}`, icon: "User", run: () => run({ assignee: email }) })),
    { label: "Unassign", icon: "X", disabled: assignee === "", run: () => run({ assignee: null }) },
  ];
}
