package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// soakDir creates and returns the folder for the figures and the server's log.
func soakDir(t *testing.T) string {
	dir := os.Getenv("SATCHEL_SOAK_DIR")
	if dir == "" {
		dir = filepath.Join("bin", "soak")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// report writes the samples as CSV, and draws them.
func (s *soak) report(t *testing.T) {
	dir := soakDir(t)
	var csv strings.Builder
	csv.WriteString("seconds,mb,files,goroutines,p99_ms\n")
	for _, x := range s.samples {
		fmt.Fprintf(&csv, "%.0f,%.1f,%.0f,%.0f,%.1f\n", x.Seconds, x.MB, x.Files, x.Goroutines, x.P99)
	}
	for name, text := range map[string]string{"soak.csv": csv.String(), "soak.svg": s.chart()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests, %d kills; figures in %s", s.requests, len(s.kills), dir)
}

// The size of the chart of one figure.
const (
	chartWidth, chartHeight = 720.0, 110.0
	chartLeft, chartTop     = 90.0, 20.0
)

// chart draws each figure over time as SVG, with the kills.
func (s *soak) chart() string {
	figures := []struct {
		title string
		of    func(sample) float64
	}{
		{"memory, MB", func(x sample) float64 { return x.MB }},
		{"open files", func(x sample) float64 { return x.Files }},
		{"goroutines", func(x sample) float64 { return x.Goroutines }},
		{"p99, ms", func(x sample) float64 { return x.P99 }},
	}
	end := 1.0
	for _, x := range s.samples {
		end = max(end, x.Seconds)
	}
	at := func(seconds float64) float64 { return chartLeft + seconds/end*chartWidth }
	var out strings.Builder
	total := chartTop + float64(len(figures))*(chartHeight+chartTop*2)
	fmt.Fprintf(
		&out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+
			`<rect width="100%%" height="100%%" fill="#fff"/>`,
		chartLeft+chartWidth+20,
		total,
	)
	for i, f := range figures {
		top, most := chartTop+float64(i)*(chartHeight+chartTop*2), 0.0
		for _, x := range s.samples {
			most = max(most, f.of(x))
		}
		var points strings.Builder
		for _, x := range s.samples {
			fmt.Fprintf(&points, "%.1f,%.1f ", at(x.Seconds), top+chartHeight-f.of(x)/max(most, 1)*chartHeight)
		}
		fmt.Fprintf(
			&out,
			`<text x="%.0f" y="%.0f">%s</text><text x="%.0f" y="%.0f" text-anchor="end">%.0f</text><text x="%.0f" `+
				`y="%.0f" text-anchor="end">0</text>`,
			chartLeft, top-5, f.title, chartLeft-6, top+10, most, chartLeft-6, top+chartHeight,
		)
		for _, kill := range s.kills {
			fmt.Fprintf(
				&out,
				`<line x1="%[1]f" x2="%[1]f" y1="%f" y2="%f" stroke="#d33" stroke-dasharray="3"/>`,
				at(kill),
				top,
				top+chartHeight,
			)
		}
		fmt.Fprintf(
			&out,
			`<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="none" stroke="#bbb"/><polyline points="%s" `+
				`fill="none" stroke="#36c"/>`,
			chartLeft, top, chartWidth, chartHeight,
			points.String(),
		)
	}
	fmt.Fprintf(
		&out,
		`<text x="%.0f" y="%.0f" text-anchor="end">%.0f s; dashed: killed and started again</text></svg>`+"\n",
		chartLeft+chartWidth,
		total-8,
		end,
	)
	return out.String()
}
