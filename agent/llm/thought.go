package llm

import (
	"strings"
	"unicode"
)

// thoughtTags enclose the thought with which models begin their text, if the server does
// not separate it: DeepSeek, Qwen and many more; Seed; Kimi; Magistral; Command A; and
// gpt-oss, whose thought ends where its final channel begins.
var thoughtTags = [][2]string{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"},
	{"◁think▷", "◁/think▷"},
	{"[THINK]", "[/THINK]"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<|channel|>analysis<|message|>", "<|channel|>final<|message|>"},
}

// thoughtFilter separates the leading blocks of thought from a text that comes in pieces.
type thoughtFilter struct {
	held    []byte // the beginning, until it is known whether a block begins
	thought []byte // the blocks, with their tags
	closing string // the end of the current block; "" outside of one
	from    int    // in thought: where to look for closing
	began   bool   // the text has begun
}

// add returns what a piece adds to the text.
func (f *thoughtFilter) add(piece string) string {
	if f.began {
		return piece
	}
	f.held = append(f.held, piece...)
	for {
		if f.closing != "" && !f.endBlock() {
			return ""
		}
		trimmed := strings.TrimLeftFunc(string(f.held), unicode.IsSpace)
		opening, closing, possible := openingTag(trimmed)
		switch {
		case opening != "":
			f.from = len(f.thought) + len(opening)
			f.thought = append(f.thought, trimmed[:len(opening)]...)
			f.held, f.closing = []byte(trimmed[len(opening):]), closing
		case possible:
			return ""
		default:
			f.began = true
			if f.thought != nil {
				f.held = []byte(trimmed)
			}
			return f.take()
		}
	}
}

// endBlock moves the held text to the thought, up to the end of the block, and reports
// whether that was found.
func (f *thoughtFilter) endBlock() bool {
	f.thought = append(f.thought, f.held...)
	f.held = f.held[:0]
	at := strings.Index(string(f.thought[f.from:]), f.closing)
	if at < 0 {
		f.from = max(f.from, len(f.thought)-len(f.closing)+1)
		return false
	}
	end := f.from + at + len(f.closing)
	f.held = append(f.held, f.thought[end:]...)
	f.thought, f.closing = f.thought[:end], ""
	return true
}

// openingTag returns the tags of the block that a text begins with, and whether more of
// the text is needed to know.
func openingTag(text string) (opening, closing string, possible bool) {
	for _, tags := range thoughtTags {
		if strings.HasPrefix(text, tags[0]) {
			return tags[0], tags[1], false
		}
		possible = possible || strings.HasPrefix(tags[0], text)
	}
	return "", "", possible
}

// end returns what is left of the text, when no more pieces come.
func (f *thoughtFilter) end() string {
	if f.closing != "" {
		return ""
	}
	f.began = true
	return f.take()
}

func (f *thoughtFilter) take() string {
	text := string(f.held)
	f.held = nil
	return text
}

// WithoutThought returns a model's text without its leading blocks of thought, whose
// opening tag may be part of the model's template and missing in the text.
func WithoutThought(text string) string {
	_, text = cutThought(text)
	return text
}

// cutThought separates the leading blocks of thought from a text.
func cutThought(text string) (thought, rest string) {
	var filter thoughtFilter
	rest = filter.add(text) + filter.end()
	if thought = string(filter.thought); thought != "" {
		return thought, rest
	}
	const closing = "</think>"
	before, after, found := strings.Cut(text, closing)
	ownLine := strings.HasSuffix(before, "\n") || strings.HasPrefix(after, "\n")
	if !found || !ownLine || strings.Contains(before, "<think>") {
		return "", text
	}
	rest = strings.TrimLeftFunc(after, unicode.IsSpace)
	return text[:len(text)-len(rest)], rest
}
