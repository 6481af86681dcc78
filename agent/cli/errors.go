package cli

import "strconv"

// Error is one setting that cannot be used.
type Error struct {
	Name   string // the setting's name, or the unknown key; "" when the whole file is meant
	Source string // "flag --addr", "variable SATCHEL_ADDR", "satchel.toml:addr" or the file's name
	Issue  string // what is wrong; never holds the value of a secret
}

// Error gives one line: the source, then the issue.
func (e *Error) Error() string { return e.Source + ": " + e.Issue }

// quote shows a value in an error, cut to a readable length.
func quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}
