/** Bars of a few series, stacked; the same numbers stand in a table for those who cannot see it. */
export function Bars({
  days,
  series,
  label,
}: {
  days: string[];
  series: { name: string; tone: "good" | "bad" | "busy" | "warn" | "act"; values: number[] }[];
  label: string;
}) {
  const totals = days.map((_, i) => series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0));
  const max = Math.max(1, ...totals);
  const width = 100 / Math.max(1, days.length);
  return (
    <figure class="bars">
      <figcaption class="row">
        <span class="grow">{label}</span>
        {series.map((s) => (
          <span class="small muted">
            <i class={`swatch ${s.tone}`} /> {s.name} {s.values.reduce((a, b) => a + b, 0).toLocaleString()}
          </span>
        ))}
      </figcaption>
      <svg
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${totals.reduce((a, b) => a + b, 0)} in ${days.length} days`}
      >
        {days.map((day, i) => {
          let y = 40;
          return series.map((s) => {
            const height = ((s.values[i] ?? 0) / max) * 38;
            y -= height;
            return (
              height > 0 && (
                <rect class={`bar ${s.tone}`} x={i * width + width * 0.15} y={y} width={width * 0.7} height={height}>
                  <title>{`${day}: ${s.values[i]} ${s.name}`}</title>
                </rect>
              )
            );
          });
        })}
      </svg>
      <table class="hidden">
        <thead>
          <tr>
            <th>Day</th>
            {series.map((s) => (
              <th>{s.name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((d, i) => (
            <tr>
              <td>{d}</td>
              {series.map((s) => (
                <td>{s.values[i]}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
