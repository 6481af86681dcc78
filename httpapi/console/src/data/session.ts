// The identity of the person, and the agents that they may see.
import { computed, signal } from "@preact/signals";

import { asError, requestKeyFromTabs, get, key } from "./api";
import { clearCache } from "./query";
import { restartLive } from "./live";
import { agentId } from "./route";
import type { Console, ConsoleAgent } from "./types";

/** A role on an agent. */
export type Role = ConsoleAgent["role"];
/** An agent of the session. */
export type AgentEntry = ConsoleAgent;
/** Who uses the console, and the agents that they may see. */
export type Session = Console;

/** The session; undefined until it is loaded. */
export const session = signal<Session | undefined>(undefined);
/** Why the session could not be loaded. */
export const sessionError = signal<Error | undefined>(undefined);

/** The agent of the address as the list of agents has it. */
export const agent = computed(() =>
  session.value?.agents.find((a) => a.id === agentId.value || a.name === agentId.value),
);

/** Reports whether the person may change things of the agent. */
export const mayEdit = computed(() => agent.value !== undefined && agent.value.role !== "viewer");

/** Loads the session. */
export async function loadSession() {
  try {
    await requestKeyFromTabs();
    session.value = await get("console", { agent: agentId.value });
    sessionError.value = undefined;
  } catch (error) {
    sessionError.value = asError(error);
  }
}

/** Uses another API key from now on; empty for none. */
export async function useKey(value: string) {
  key.set(value);
  clearCache();
  restartLive();
  await loadSession();
}

const lastAgent = "satchel.agent";

/** Returns the agent that was shown last in this browser. */
export const rememberedAgent = () => {
  try {
    return localStorage.getItem(lastAgent) ?? "default";
  } catch {
    return "default";
  }
};
/** Remembers the agent that was opened last. */
export const rememberAgent = (id: string) => {
  try {
    localStorage.setItem(lastAgent, id);
  } catch {
    /* nothing depends on it */
  }
};

/** Returns in a sentence what callers without a key or an identity may do. */
export function anonymousAccessText(role?: string) {
  const may =
    {
      viewer: "may read and search the default agent, its contacts and conversations included, and nothing else",
      admin: "may read and change the default agent, and nothing else",
    }[role as "viewer"] ?? "may do nothing";
  return (
    `Callers without a key or an identity ${may}. An owner of the agent default can change this, ` +
    "unless the operator has with SATCHEL_DEFAULT_ROLE."
  );
}
