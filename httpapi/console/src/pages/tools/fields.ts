import type { FormState, TextOf } from "../../ui";
import type { ToolValues } from "./values";

/** What the fields of a type of tool get from the form. */
export type ToolFieldsProps = {
  form: FormState<ToolValues>;
  /** The props of a text field. */
  text: TextOf<ToolValues>;
  /** What is wrong with a field of the config. */
  issue: (name: string) => string | undefined;
  disabled: boolean;
};

/** The values of a text with one value in each line. */
export const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
