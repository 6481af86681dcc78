package cli

import "strconv"

// Error is one invalid setting.
type Error struct {
	Name   string // the setting's name, or the unknown key; "" for the whole file
	Source string // "flag --addr", "variable SATCHEL_ADDR", "satchel.toml:addr" or the file's name
	Issue  string // what is wrong; never contains the value of a secret
}

// Error returns one line: the source, then the issue.
func (e *Error) Error() string {
	return e.Source + ": " + e.Issue
}

// quote returns a value for an error, cut to a readable length.
func quote(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}
