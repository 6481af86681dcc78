package e2e

import (
	"fmt"
	"testing"
)

// TestConsolePassagesAreText shows a passage of Markdown as people read it: without its
// syntax, with the found words marked, and with what only looks like markup as text.
func TestConsolePassagesAreText(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t)
	const base = "/api/agents/default"
	source := ts.upload(
		t,
		base+"/sources",
		"manual.md",
		"# Manual\n\n## Refunds & `returns`\n\nA refund takes **two days**, "+
			"see [the terms](https://example.com/terms) or run `refund --all`. <b onclick=x>Bold</b>\n\n"+
			"| Loaf | Price |\n|---|---|\n| Rye | 4 |\n\n```sh\n# a comment **as it is**\n```\n",
		nil,
	)
	id := fmt.Sprint(source.JSON["id"])
	ts.waitIndexed(t, base+"/sources/"+id)
	p := ts.openConsole(t, 1280)
	p.open("knowledge?q=how+long+does+a+refund+take", `document.querySelector(".results .best-sentence")`)
	shown := p.eval(`document.querySelector(".results p").textContent.replace(/\s+/g, " ")`)
	const want = "Manual Refunds & returns A refund takes two days, see the terms or run refund --all. " +
		"<b onclick=x>Bold</b> | Loaf | Price | | Rye | 4 | # a comment **as it is** "
	if shown != want {
		t.Errorf("shown:\n%q, want\n%q", shown, want)
	}
	for what, expression := range map[string]string{
		"strong words": `[...document.querySelectorAll(".results strong")].some((e) => ` +
			`e.textContent.includes("two days"))`,
		"a heading": `[...document.querySelectorAll(".results strong")].some((e) => ` +
			`e.textContent.includes("Manual"))`,
		"a found word":  `document.querySelector(".results mark")?.textContent.toLowerCase().includes("refund")`,
		"no other mark": `!document.querySelector(".results p b, .results p a")`,
	} {
		if p.eval(`Boolean(`+expression+`)`) != true {
			t.Errorf("%s: not shown", what)
		}
	}
	p.open("knowledge/"+id, `document.querySelector(".source-text strong")`)
}
