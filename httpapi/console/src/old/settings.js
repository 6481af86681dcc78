// Settings, and the credentials that can be set and never read.
import { get, put } from "./api.js";
import { badge, button, h, tell } from "./dom.js";
import { form } from "./form.js";

const providers = [["", "none"], "openai", "anthropic", "ollama", "openai-compatible"];
const groups = [
  ["Language model", [
    { name: "llm_provider", label: "Provider", type: "select", options: providers },
    { name: "llm_model", label: "Model" },
    { name: "llm_temperature", label: "Temperature", type: "number", min: 0, max: 2, step: 0.1 },
    { name: "llm_max_tokens", label: "Longest answer, in tokens", type: "number", min: 0, step: 1, hint: "0 leaves it to the provider." },
    { name: "llm_base_url", label: "Address of the provider", hint: "With /v1; empty for the provider's own." },
    { name: "system_prompt", label: "System prompt", type: "textarea", rows: 5 },
    { name: "auto_reply", label: "Answer messages that no workflow listens to", type: "checkbox" }]],
  ["Knowledge", [
    { name: "embedding_provider", label: "Embedding", type: "select", options: [["local", "local: the model inside Satchel"], "openai-compatible"] },
    { name: "embedding_model", label: "Embedding model", hint: "For another provider than local." },
    { name: "embedding_base_url", label: "Address of the embedding provider" }]],
  ["General", [
    { name: "timezone", label: "Time zone", hint: "Such as Europe/Berlin." },
    { name: "retention_days", label: "Days that logs and finished work are kept", type: "number", min: 1, max: 3650, step: 1 }]],
];
const credentials = [["openai_api_key", "OpenAI API key"], ["anthropic_api_key", "Anthropic API key"], ["llm_api_key", "API key of another language model"],
  ["embedding_api_key", "API key of the embedding provider"], ["chatbot_a_token", "Token of the first chat bot"]];

export async function settings(page, { at, may, signal, again }) {
  const now = await get(at("settings"), {}, signal);
  const fields = groups.flatMap(([, list]) => list);
  // Only what was changed is sent, so that two people do not undo each other.
  const save = async (values) => {
    const change = {};
    for (const f of fields.filter((f) => Object.hasOwn(values, f.name))) {
      const value = f.type === "number" ? (values[f.name] === "" ? null : Number(values[f.name])) : values[f.name];
      if (value !== now[f.name]) change[f.name] = value;
    }
    Object.assign(now, await put(at("settings"), change));
    tell("Saved.");
  };
  page.append(h("h1", { tabindex: -1 }, "Settings"), ...groups.flatMap(([title, list]) => [h("h2", {}, title),
    form(list.map((f) => ({ ...f, value: now[f.name] })), { submit: "Save", run: save, wide: true, locked: !may })]),
  h("h2", {}, "Credentials"), h("p", { class: "hint" }, "They are sealed in the agent's file and used by the agent alone; they are never shown again."),
  h("ul", { class: "cards" }, credentials.map(([name, label]) => credential(name, label, now, at, may, again))));
}

function credential(name, label, now, at, may, again) {
  const set = now.configured_credentials.includes(name);
  const locked = now.locked_credentials.includes(name);
  return h("li", { class: "card" }, h("strong", {}, label), " ", badge(locked ? "locked" : set ? "set" : "not set"),
    locked && h("p", { class: "hint" }, "It was sealed with another master key: set it again."),
    may && form([{ name, label: set ? "New value" : "Value", type: "password", required: true }],
      { submit: "Set", run: async (values) => { await put(at("settings"), values); tell("Stored."); await again(); },
        extra: set && button("Remove", async () => { await put(at("settings"), { [name]: null }); await again(); }, { class: "danger" }) }));
}
