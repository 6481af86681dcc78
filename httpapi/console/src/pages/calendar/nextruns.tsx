import { writeTime } from "../../parts/zone";

/** When a schedule runs, and its next runs. */
export function NextRuns({ words, next, zone }: { words?: string; next: string[]; zone: string }) {
  return (
    <div class="preview" role="status">
      {words && (
        <p>
          <b>{words}</b>
        </p>
      )}
      <ol>
        {next.map((t) => (
          <li key={t}>
            <time dateTime={t}>{writeTime(t, zone)}</time>
          </li>
        ))}
      </ol>
    </div>
  );
}
