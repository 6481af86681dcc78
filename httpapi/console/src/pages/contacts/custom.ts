// Custom fields of contacts: the members of their metadata.
import { get } from "../../data";
import { contactsAt } from "./paths";

/** Stores changed fields of a contact. */
export type SaveContact = (change: object) => Promise<void>;

/** The text by which a custom field is edited. */
export function customText(value: unknown) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Returns the change that sets a custom field of a contact, or removes it if the text is empty. A value that was not a
 * string keeps its type where the text is JSON.
 */
export async function saveCustom(id: string, key: string, text: string) {
  const { metadata } = await get(contactsAt(id));
  if (!text.trim()) {
    delete metadata[key];
    return { metadata };
  }
  return { metadata: { ...metadata, [key]: parseAs(metadata[key], text) } };
}

function parseAs(previous: unknown, text: string): unknown {
  if (previous === undefined || typeof previous === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
