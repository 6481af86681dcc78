package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// walk counts what a person does to reach a goal: clicks, including drops, and keys
// except those that type text.
type walk struct {
	number, limit int
	name          string
	clicks, keys  int
	paused        bool
	begun         time.Time
}

// begin starts counting. The walk may take at most limit clicks.
func (p *browserPage) begin(number int, name string, limit int) *walk {
	p.walk = &walk{number: number, name: name, limit: limit, begun: time.Now()}
	return p.walk
}

// end reports the walk, and fails if it took too many clicks.
func (w *walk) end(t *testing.T) {
	t.Helper()
	w.paused = true
	t.Logf(
		"walk %2d  %-50s %2d clicks of %2d  %2d keys  %5.1f s",
		w.number, w.name, w.clicks, w.limit, w.keys,
		time.Since(w.begun).Seconds(),
	)
	if w.clicks > w.limit {
		t.Errorf("walk %d takes %d clicks, at most %d", w.number, w.clicks, w.limit)
	}
}

// aside runs what a person would not do, without counting it.
func (w *walk) aside(run func()) {
	w.paused = true
	run()
	w.paused = false
}

func (w *walk) clicked() {
	if w != nil && !w.paused {
		w.clicks++
	}
}

func (w *walk) pressed() {
	if w != nil && !w.paused {
		w.keys++
	}
}

// link returns an expression for the link with a text on the page.
func link(text string) string {
	return `[...document.querySelectorAll("#main a")].find((a) => a.textContent.trim() === ` + quoted(text) + `)`
}

// pdf returns a PDF file of one page with these lines.
func pdf(lines ...string) string {
	text := "BT /F1 12 Tf 14 TL 50 700 Td (" + strings.Join(lines, ") Tj T* (") + ") Tj ET"
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(text), text),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, offset := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.String()
}
