package main

import (
	"regexp"
	"strings"
)

// longScript returns the lines of a TypeScript file, from 0, that have too many columns;
// any number is allowed in the text of a template of several lines.
func longScript(text []byte) (lines []int) {
	inText := templateLines(string(text))
	for line, content := range strings.Split(string(text), "\n") {
		if width(content) > limit && !inText[line] {
			lines = append(lines, line)
		}
	}
	return lines
}

var (
	noTemplate = regexp.MustCompile(`^(?://[^\n]*|/\*(?s:.*?)\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`)
	expression = regexp.MustCompile(`^/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/`)
	operand    = regexp.MustCompile(`(?:[\w$)\]}"'` + "`" + `]|\breturn)\s*$`)
)

// templateLines returns the lines that are in the texts of templates of several lines.
func templateLines(text string) map[int]bool {
	lines := map[int]bool{}
	var braces []int // for each template that is open: the open braces in its ${}, -1 in its text
	begin, line := 0, 0
	mark := func() {
		for ; begin <= line && line > 0; begin++ {
			lines[begin] = true
		}
	}
	for i := 0; i < len(text); i++ {
		last := len(braces) - 1
		inText := last >= 0 && braces[last] < 0
		rest := text[i:]
		switch {
		case rest[0] == '\n':
			line++
		case inText && rest[0] == '\\':
			i++
		case inText && (rest[0] == '`' || strings.HasPrefix(rest, "${")):
			if line > begin {
				mark()
			}
			if rest[0] == '`' {
				braces = braces[:last]
			} else {
				braces[last] = 0
				i++
			}
		case inText:
		case rest[0] == '`':
			braces, begin = append(braces, -1), line
		case rest[0] == '{' && last >= 0:
			braces[last]++
		case rest[0] == '}' && last >= 0:
			if braces[last]--; braces[last] < 0 {
				begin = line
			}
		default:
			skipped := noTemplate.FindString(rest)
			if skipped == "" &&
				rest[0] == '/' &&
				!operand.MatchString(text[max(0, i-20):i]) {
				skipped = expression.FindString(rest)
			}
			line += strings.Count(skipped, "\n")
			i += max(1, len(skipped)) - 1
		}
	}
	return lines
}

var (
	docComment  = regexp.MustCompile(`^( *)/\*\* (.*) \*/$`)
	lineComment = regexp.MustCompile(`^( *)// (.*)$`)
)

// wrapScript wraps the comments of a TypeScript file that have too many columns.
func wrapScript(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	for _, line := range longScript(text) {
		if found := docComment.FindStringSubmatch(lines[line]); found != nil {
			indent := found[1]
			lines[line] = indent + "/**\n" + wrap(indent+" *", strings.Fields(found[2])) + "\n" + indent + " */"
		} else if found := lineComment.FindStringSubmatch(lines[line]); found != nil {
			lines[line] = wrap(found[1]+"//", strings.Fields(found[2]))
		}
	}
	return []byte(strings.Join(lines, "\n"))
}
