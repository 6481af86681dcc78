package document

import (
	"strings"

	"satchel/agent"
)

// fenceMarker returns the full ``` or ~~~ marker of a line that opens a code
// fence, or "".
func fenceMarker(line string) string {
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return ""
	}
	rest := strings.TrimLeft(line, line[:1])
	if line[0] == '`' && strings.Contains(rest, "`") {
		return "" // inline code: ```like this```
	}
	return line[:len(line)-len(rest)]
}

// FenceMarker returns the ``` or ~~~ marker of a fence block's first line,
// which also closes the block.
func FenceMarker(line string) string { return fenceMarker(strings.TrimLeft(line, " \t")) }

// atxLevel returns the level of a heading like "## Title", or 0.
func atxLevel(line string) int {
	rest := strings.TrimLeft(line, "#")
	level := len(line) - len(rest)
	if level < 1 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0
	}
	return level
}

// setextLevel returns 1 for a line of =, 2 for one of -, or 0.
func setextLevel(line string) int {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "" || len(line)-len(strings.TrimLeft(line, " \t")) > 3:
		return 0
	case strings.Trim(trimmed, "=") == "":
		return 1
	case strings.Trim(trimmed, "-") == "":
		return 2
	}
	return 0
}

// isListItem reports whether a line starts with "- ", "* ", "+ ", "1. " or "1)
// " and is not a thematic break like "* * *".
func isListItem(line string) bool {
	digits := 0
	for digits < len(line) &&
		digits < 10 &&
		line[digits] >= '0' &&
		line[digits] <= '9' {
		digits++
	}
	rest := line[digits:]
	if rest == "" || digits > 9 {
		return false
	}
	marker := strings.IndexByte("-*+", rest[0]) >= 0 && digits == 0 ||
		(rest[0] == '.' || rest[0] == ')') && digits > 0
	if !marker || len(rest) > 1 && rest[1] != ' ' && rest[1] != '\t' {
		return false
	}
	return digits > 0 || strings.Trim(line, line[:1]+" \t") != ""
}

// isTableRule reports whether a line is a table's delimiter row: "|---|:--:|".
func isTableRule(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, "-") && strings.Contains(line, "|") &&
		strings.Trim(line, "|-: \t") == ""
}

var (
	mdLink    = agent.Pattern(`!?\[([^\[\]]*)\]\([^()\s]*(?:\s+"[^"]*")?\)`)
	mdAnchor  = agent.Pattern(`\s*\{#[^{}]*\}\s*$`)
	mdTag     = agent.Pattern(`</?[A-Za-z][^<>]*>`)
	mdEscape  = agent.Pattern("\\\\([!-/:-@\\[-`{-~])")
	mdClosing = agent.Pattern(`\s+#+\s*$`)
	mdMarks   = strings.NewReplacer("**", "", "__", "", "`", "", "~~", "")
)

// HeadingText returns a heading's text without Markdown, on one line of at
// most 120 characters.
func HeadingText(heading string) string {
	if len(heading) > 4096 {
		heading = strings.ToValidUTF8(heading[:4096], "")
	}
	heading = strings.TrimSpace(heading)
	if body, underline, ok := cutLast(heading, "\n"); ok && setextLevel(underline) > 0 {
		heading = body
	} else {
		heading = strings.TrimLeft(heading, "#")
		heading = mdClosing().ReplaceAllString(heading, "")
	}
	heading = mdAnchor().ReplaceAllString(heading, "")
	heading = mdLink().ReplaceAllString(heading, "$1")
	heading = mdTag().ReplaceAllString(heading, "")
	heading = mdMarks.Replace(heading)
	heading = mdEscape().ReplaceAllString(heading, "$1")
	heading = trimEmphasis(strings.Join(strings.Fields(heading), " "))
	return agent.Clip(heading, maxHeadingText)
}

// trimEmphasis removes one pair of * or _ around a text.
func trimEmphasis(s string) string {
	if n := len(s); n > 2 && s[0] == s[n-1] && (s[0] == '*' || s[0] == '_') {
		return s[1 : n-1]
	}
	return s
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
