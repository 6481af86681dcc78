package agent

import (
	"regexp"
	"strings"
)

var (
	// severalNumbers separates numbers that were written into one cell. A slash or a comma
	// also separates the parts of one number, which are shorter.
	severalNumbers = regexp.MustCompile(`[,;|/&\n\r]+|\s(?:or|and|oder|und)\s|\s\+`)
	// wholeNumber is a number as programs for tables write one from a column of numbers.
	wholeNumber = regexp.MustCompile(`^[0-9]{7,15}\.0+$`)
)

const (
	leastPhone = 7  // digits of a number without its area code
	mostDigits = 15 // of a number
	mostPhone  = 20 // digits with an extension
)

// CleanCells writes numbers of a row of an import as people write them.
func (ch *ContactChange) CleanCells() {
	for _, phone := range []*Optional[string]{&ch.Phone, &ch.WhatsApp} {
		if text := strings.TrimSpace(phone.Value); wholeNumber.MatchString(text) {
			phone.Value, _, _ = strings.Cut(text, ".")
		}
	}
}

// CheckCells checks the identifiers of a row of an import; known is the contact that it
// updates, or nil. What a contact already has may be imported again.
func (ch *ContactChange) CheckCells(known *Contact) error {
	var is Issues
	for field, value := range map[string]Optional[string]{"phone": ch.Phone, "chatbot_b": ch.WhatsApp} {
		if known == nil || known.Identifier(field) != strings.TrimSpace(value.Value) {
			is.Check(
				!isSeveralNumbers(value.Value),
				field,
				"has several numbers; keep one, and put the others into a column of their own",
			)
		}
	}
	is.Check(
		strings.Count(ch.Email.Value, "@") < 2 || !strings.ContainsAny(strings.TrimSpace(ch.Email.Value), ",;| \n"),
		"email",
		"has several addresses; keep one, and put the others into a column of their own",
	)
	return is.Err()
}

func isSeveralNumbers(cell string) bool {
	full, total := 0, 0
	for _, part := range severalNumbers.Split(cell, -1) {
		digits := 0
		for _, r := range part {
			if r >= '0' && r <= '9' {
				digits++
			}
		}
		if total += digits; digits >= leastPhone {
			full++
		}
	}
	return total > mostPhone || full > 1 && (total > mostDigits || !strings.Contains(cell, "/"))
}
