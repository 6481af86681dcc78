// Conditions on the columns of a table, as the API has them.

/** A condition on a column. */
export type RowCondition = { column: string; operator: string; value?: unknown };

/** The operators of conditions and their labels. */
export const rowOperators: [operator: string, label: string][] = [
  ["equals", "is"],
  ["not_equals", "is not"],
  ["contains", "contains"],
  ["not_contains", "does not contain"],
  ["starts_with", "starts with"],
  ["ends_with", "ends with"],
  ["gt", "is greater than"],
  ["gte", "is at least"],
  ["lt", "is less than"],
  ["lte", "is at most"],
  ["in", "is one of"],
  ["not_in", "is none of"],
  ["is_empty", "is empty"],
  ["is_not_empty", "is not empty"],
  ["is_true", "is yes"],
  ["is_false", "is no"],
];

/** Operators that compare with nothing. */
export const unary = new Set(["is_empty", "is_not_empty", "is_true", "is_false"]);
