// Fields that contacts have beside the usual ones: the members of their metadata.
import { agentId, get, path } from "../../data";

/** A custom field as it is typed. */
export const customText = (value: unknown) =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** The change that gives a contact a custom field; other fields are those that it has now. What was no text stays of its kind if it can. */
export async function saveCustom(id: string, key: string, text: string) {
  const { metadata } = await get(path("agents", agentId.value, "contacts", id));
  if (!text.trim()) {
    delete metadata[key];
    return { metadata };
  }
  let value: unknown = text;
  const was = metadata[key];
  if (was !== undefined && typeof was !== "string") {
    try {
      value = JSON.parse(text);
    } catch {
      /* a text from now on */
    }
  }
  return { metadata: { ...metadata, [key]: value } };
}
