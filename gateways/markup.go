package gateways

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/atom"

	"satchel/agent"
)

// formatting is a markup of message texts: how it is split, and how it is read by
// people if the platform cannot parse it.
type formatting struct {
	pieces func(text string) []piece
	plain  func(text string) string
}

// Formattings of the platforms.
var (
	formatHTML       = &formatting{htmlPieces, htmlPlain}
	formatMarkdown   = markdown("```", "`", "*", "_")
	formatMarkdownV2 = markdown("```", "`", "||", "__", "*", "_", "~")
	formatSlack      = markdown("```", "`", "*", "_", "~") // and WhatsApp
	formatDiscord    = markdown("```", "`", "||", "***", "**", "__", "~~", "*", "_")
)

// EscapeFor returns how a value is escaped in a text of a format, so that it is shown as
// it is; nil for text without markup. Format is the platform's name.
func EscapeFor(platform agent.GatewayType, format string) func(string) string {
	switch format = strings.ToLower(format); {
	case platform == agent.GatewaySlack && format == formatMrkdwn:
		return slackEscape.Replace
	case platform != agent.GatewayTelegram:
		return nil
	case format == "html":
		return html.EscapeString
	case format == "markdownv2":
		return func(text string) string { return markdownV2Special().ReplaceAllString(text, `\$0`) }
	case format == "markdown":
		return func(text string) string { return markdownSpecial().ReplaceAllString(text, `\$0`) }
	}
	return nil
}

// Characters with a meaning, https://core.telegram.org/bots/api#formatting-options.
var (
	markdownV2Special = agent.Pattern("[`" + `\\_*\[\]()~>#+=|{}.!-]`)
	markdownSpecial   = agent.Pattern("[`" + `_*\[]`)
)

// piece is text that is not split: a character, or a unit of markup.
type piece struct {
	text string
	// opens and closes are what opens the piece's element again in the next part, and
	// what closes it at the end of a part; empty: it opens none.
	opens, closes string
	ends          bool // it closes the innermost element
}

// parts splits a text into parts of at most limit UTF-16 code units, and reports whether
// they are marked up: a text whose markup cannot be split becomes plain.
func (f *formatting) parts(text string, limit int) (parts []string, marked bool) {
	if f == nil {
		return split(text, limit), false
	}
	if parts = f.split(text, limit); parts == nil {
		return split(f.plain(text), limit), false
	}
	return parts, true
}

// split splits a text like the function split. Elements that a split cuts are closed, and
// opened again in the next part. It returns nil if that is impossible.
func (f *formatting) split(text string, limit int) []string {
	if text = strings.Trim(text, whitespace); text != "" && prefixLength(text, limit) == len(text) {
		return []string{text}
	}
	var parts []string
	var open []piece
	for pieces := f.pieces(text); len(pieces) > 0; {
		end, still := fitting(pieces, open, limit)
		if end == 0 {
			return nil
		}
		body := joined(pieces[:end])
		if strings.Trim(f.plain(body), whitespace) != "" {
			parts = append(parts, opening(open)+strings.TrimRight(body, whitespace)+closing(still))
		}
		open, pieces = still, pieces[end:]
		for n := 0; len(pieces) > 0 &&
			(n == 0 || len(open) == 0) &&
			strings.Contains(whitespace, pieces[0].text); n++ {
			pieces = pieces[1:]
		}
	}
	return parts
}

// fitting returns how many pieces form the next part, which begins within the open
// elements, and the elements that are open after them.
func fitting(pieces, open []piece, limit int) (end int, still []piece) {
	units, now := utf16Length(opening(open)), slices.Clone(open)
	inner := utf16Length(closing(open)) // what closing takes
	line, space := 0, 0
	var atLine, atSpace []piece
	for index, piece := range pieces {
		units += utf16Length(piece.text)
		switch {
		case piece.ends:
			inner -= utf16Length(now[len(now)-1].closes)
			now = now[:len(now)-1]
		case piece.opens != "":
			inner += utf16Length(piece.closes)
			now = append(slices.Clip(now), piece)
		}
		if units+inner > limit {
			switch {
			case line > 0:
				return line, atLine
			case space > 0:
				return space, atSpace
			}
			return end, still
		}
		end, still = index+1, now
		if index+1 < len(pieces) && units > limit/2 {
			switch pieces[index+1].text {
			case "\n":
				line, atLine = end, still
			case " ":
				space, atSpace = end, still
			}
		}
	}
	return end, still
}

func opening(open []piece) string {
	text := ""
	for _, p := range open {
		text += p.opens
	}
	return text
}

func closing(open []piece) string {
	text := ""
	for _, p := range slices.Backward(open) {
		text += p.closes
	}
	return text
}

func joined(pieces []piece) string {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.text)
	}
	return text.String()
}

func utf16Length(text string) (units int) {
	for _, r := range text {
		if units++; r > 0xFFFF {
			units++
		}
	}
	return units
}

var (
	htmlTag    = agent.Pattern(`^<(/?)([a-zA-Z][a-zA-Z0-9-]*)(?:"[^"]*"|'[^']*'|[^<>"'])*>`)
	htmlEntity = agent.Pattern(`^&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});`)
)

// htmlPieces reads HTML as Telegram's: all elements have an end tag.
func htmlPieces(text string) (pieces []piece) {
	var open []string
	for text != "" {
		p := piece{text: text[:runeLength(text)]}
		if tag := htmlTag().FindStringSubmatch(text); tag != nil {
			p.text = tag[0]
			if name := strings.ToLower(tag[2]); tag[1] == "" {
				p.opens, p.closes, open = tag[0], "</"+name+">", append(open, name)
			} else if n := len(open); n > 0 && open[n-1] == name {
				p.ends, open = true, open[:n-1]
			}
		} else if entity := htmlEntity().FindString(text); entity != "" {
			p.text = entity
		}
		pieces, text = append(pieces, p), text[len(p.text):]
	}
	return pieces
}

// htmlPlain returns the text of HTML, which may be invalid: what is no tag of HTML stays.
func htmlPlain(text string) string {
	var out strings.Builder
	for text != "" {
		n := runeLength(text)
		if tag := htmlTag().FindStringSubmatch(text); tag == nil || !isHTMLTag(tag[2]) {
			out.WriteString(text[:n])
		} else if n = len(tag[0]); slices.Contains(lineTags, strings.ToLower(tag[1]+tag[2])) {
			out.WriteByte('\n')
		}
		text = text[n:]
	}
	return html.UnescapeString(out.String())
}

// lineTags are tags that end a line.
var lineTags = []string{"br", "/p", "/div", "/li", "/tr", "/h1", "/h2", "/h3"}

func isHTMLTag(name string) bool {
	name = strings.ToLower(name)
	return atom.Lookup([]byte(name)) != 0 || strings.HasPrefix(name, "tg-")
}

func runeLength(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

var (
	// markdownUnit is an escaped character, a link, a mention, or an entity of Slack.
	markdownUnit = agent.Pattern(
		"^(?:\\\\[[:punct:]]|!?\\[[^\\[\\]\n]*\\]\\([^()\\s]*\\)|<[^<>\\s][^<>\n]*>|&(?:amp|lt|gt);)",
	)
	markdownFence = agent.Pattern("^```[a-zA-Z0-9_+#.-]*\n")
	escapedRune   = agent.Pattern(`\\([[:punct:]])`)
)

// markdown returns a formatting whose elements begin and end with the same marks; of
// several that fit the first counts.
func markdown(marks ...string) *formatting {
	return &formatting{
		pieces: func(text string) []piece { return markdownPieces(text, marks) },
		plain: func(text string) string {
			return escapedRune().ReplaceAllString(text, "$1")
		},
	}
}

func markdownPieces(text string, marks []string) (pieces []piece) {
	var open []string
	for at := 0; at < len(text); {
		rest, inside := text[at:], ""
		if len(open) > 0 {
			inside = open[len(open)-1]
		}
		p := piece{text: rest[:runeLength(rest)]}
		mark := func() string {
			if strings.HasPrefix(inside, "`") && !strings.HasPrefix(rest, inside) {
				return ""
			}
			for _, m := range append([]string{inside}, marks...) {
				if m != "" && strings.HasPrefix(rest, m) {
					return m
				}
			}
			return ""
		}()
		unit := ""
		if strings.IndexByte(`\![<&`, rest[0]) >= 0 {
			unit = markdownUnit().FindString(rest)
		}
		switch {
		case mark != "" && mark == inside:
			p.text, p.ends, open = mark, true, open[:len(open)-1]
		case strings.HasPrefix(inside, "`"):
		case unit != "":
			p.text = unit
		case mark != "" && opensElement(text[:at], rest, mark):
			p.text, p.opens, p.closes = mark, mark, mark
			if fence := markdownFence().FindString(rest); mark == "```" && fence != "" {
				p.text, p.opens, p.closes = fence, fence, "\n"+mark
			}
			open = append(open, mark)
		case mark != "":
			p.text = mark
		}
		pieces, at = append(pieces, p), at+len(p.text)
	}
	return pieces
}

// opensElement reports whether a mark between two texts opens an element: it is at the
// start of a word, and closed within the paragraph.
func opensElement(before, rest, mark string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	after := rest[len(mark):]
	if mark != "```" {
		after, _, _ = strings.Cut(after, "\n\n")
		if after == "" || strings.Contains(whitespace, after[:1]) {
			return false
		}
	}
	return strings.Contains(after, mark) && (mark[0] == '`' || !unicode.IsLetter(last) && !unicode.IsDigit(last))
}
