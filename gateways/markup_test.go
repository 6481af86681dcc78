package gateways

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/agent"
)

// TestFormattedParts splits marked-up texts: what a split cuts is closed and opened
// again.
func TestFormattedParts(t *testing.T) {
	for _, c := range []struct {
		format *formatting
		text   string
		limit  int
		want   []string
	}{
		{formatHTML, "<b>one two three</b>", 19, []string{"<b>one two</b>", "<b>three</b>"}},
		{
			formatHTML,
			`<a href="x>y"><i>one two</i></a> end`,
			35,
			[]string{`<a href="x>y"><i>one two</i></a> end`[:32], "end"},
		},
		{
			formatHTML,
			`<a href="u"><i>one two three</i></a>`,
			32,
			[]string{`<a href="u"><i>one two</i></a>`, `<a href="u"><i>three</i></a>`},
		},
		{formatHTML, "abcdefgh&amp;ijk", 12, []string{"abcdefgh", "&amp;ijk"}},
		{
			formatHTML,
			"<pre><code class=\"language-go\">a\n  b\n  c</code></pre>",
			47,
			[]string{
				"<pre><code class=\"language-go\">a</code></pre>",
				"<pre><code class=\"language-go\">  b</code></pre>",
				"<pre><code class=\"language-go\">  c</code></pre>",
			},
		},
		{formatHTML, "5 < 6 and 7 > 2", 10, []string{"5 < 6 and", "7 > 2"}},
		{formatHTML, "<b>🙂🙂🙂</b>", 11, []string{"<b>🙂🙂</b>", "<b>🙂</b>"}},
		{
			formatDiscord,
			"Look:\n```go\nfirst()\nsecond()\n```\nDone.",
			28,
			[]string{"Look:\n```go\nfirst()\n```", "```go\nsecond()\n```\nDone."},
		},
		{
			formatDiscord,
			"**one two three** 2 * 3 snake_case_x",
			15,
			[]string{"**one two**", "**three** 2 * 3", "snake_case_x"},
		},
		{
			formatDiscord,
			"see [the page](https://example.com/a) now",
			34,
			[]string{"see", "[the page](https://example.com/a)", "now"},
		},
		{formatMarkdownV2, `*one two\. three\.*`, 12, []string{`*one two\.*`, `*three\.*`}},
		{
			formatSlack,
			"<https://e.example|the page> *a b c d* &amp; more",
			29,
			[]string{"<https://e.example|the page>", "*a b c d* &amp; more"},
		},
	} {
		got, marked := c.format.parts(c.text, c.limit)
		if !marked || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	unsplittable := `<a href="` + strings.Repeat("x", 50) + `">the page</a> &amp; more`
	if got, marked := formatHTML.parts(unsplittable, 40); marked || !slices.Equal(got, []string{"the page & more"}) {
		t.Errorf("a link that fits no message: %q, %v", got, marked)
	}
}

// FuzzFormattedParts checks that parts fit, are balanced, and are together the whole.
func FuzzFormattedParts(f *testing.F) {
	f.Add("<b>one <i>two</i> &lt;three&gt;</b>\n```go\nx *y* _z_\n```\n", 20)
	f.Add("<a href='x'>🙂 [a](b) **c** ||d||</a></b>", 30)
	visible := func(text string) string {
		return strings.Join(strings.Fields(htmlPlain(text)), "")
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 2 || limit > 5000 || len(text) > 5000 {
			return
		}
		for _, format := range []*formatting{formatHTML, formatDiscord, formatMarkdownV2} {
			parts, marked := format.parts(text, limit)
			for _, part := range parts {
				if utf16Length(part) > limit || utf8.ValidString(text) && !utf8.ValidString(part) {
					t.Fatalf("a part of %d characters: %q", utf16Length(part), part)
				}
			}
			balanced := strings.Count(text, "<b>") == strings.Count(text, "</b>") &&
				!strings.ContainsAny(visible(text), "<>&")
			if format == formatHTML && marked && balanced && utf8.ValidString(text) {
				if got, want := visible(strings.Join(parts, "")), visible(text); got != want {
					t.Fatalf("%q became %q", want, got)
				}
			}
		}
	})
}

// TestLongHTMLArrives sends HTML of more than a message to Telegram, with valid and with
// invalid markup.
func TestLongHTMLArrives(t *testing.T) {
	b := newBotServer(t)
	r := newHookFixture(t, nil)
	g, _ := r.connect(t, "telegram", telegramConfig(b))
	text := "<b>" + strings.Repeat("Tea &amp; <i>cake</i> for two. ", 400) + "</b>"
	sent, err := r.Send(t.Context(), r.db, SendRequest{
		Type:      agent.GatewayTelegram,
		GatewayID: g.ID,
		To:        "42",
		Text:      text,
		Format:    "HTML",
	})
	if err != nil || sent.Parts < 3 {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	_, messages, _, _ := b.state()
	whole, tag := "", regexp.MustCompile("<[^>]*>")
	for _, m := range messages {
		part := m["text"].(string)
		if utf16Length(part) > telegramLimit || m["parse_mode"] != "HTML" {
			t.Errorf("%d characters in %v", utf16Length(part), m["parse_mode"])
		}
		for _, name := range []string{"b", "i"} {
			if strings.Count(part, "<"+name+">") != strings.Count(part, "</"+name+">") {
				t.Errorf("%s is not closed in %s", name, part)
			}
		}
		whole += html.UnescapeString(tag.ReplaceAllString(part, "")) + " "
	}
	if want := strings.Repeat("Tea & cake for two. ", 400); strings.TrimSpace(whole) != strings.TrimSpace(want) {
		t.Errorf("%d characters arrived, want %d", len(whole), len(want))
	}
	b.failNext(
		"sendMessage",
		`400 {"ok":false,"description":"Bad Request: can't parse entities: Unsupported start `+
			`tag \"p\" at byte offset 0"}`,
	)
	_, err = r.Send(t.Context(), r.db, SendRequest{
		Type:      agent.GatewayTelegram,
		GatewayID: g.ID,
		To:        "42",
		Text:      "<p>1 < 2 &amp; <b>3</p>4 <Ada>",
		Format:    "HTML",
	})
	_, messages, _, _ = b.state()
	last := messages[len(messages)-1]
	if err != nil || last["text"] != "1 < 2 & 3\n4 <Ada>" || last["parse_mode"] != nil {
		t.Errorf("invalid HTML arrives as %v, %v", last, err)
	}
	refused := `400 {"ok":false,"description":"Bad Request: can't parse entities"}`
	b.failNext("sendMessage", refused, refused)
	if _, err = r.Send(t.Context(), r.db, SendRequest{
		Type:      agent.GatewayTelegram,
		GatewayID: g.ID,
		To:        "42",
		Text:      "<b>x",
		Format:    "HTML",
	}); err == nil {
		t.Error("a message that was refused twice counts as sent")
	}
}

func BenchmarkFormattedParts(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		text := "<b>" + strings.Repeat("word &amp; ", n) + "</b>"
		b.Run(fmt.Sprint(len(text)), func(b *testing.B) {
			for b.Loop() {
				formatHTML.parts(text, telegramLimit)
			}
		})
	}
}
