import { JsonTree } from "../../ui";

/** A value that a model read from a page. */
export function TextOrJson({ value }: { value: unknown }) {
  if (typeof value !== "string") return <JsonTree value={value} />;
  return (
    <p class="pre">
      <bdi>{value}</bdi>
    </p>
  );
}
