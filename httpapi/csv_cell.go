package httpapi

import (
	"strconv"
	"strings"

	"satchel/agent"
)

// Spreadsheets write cells that are not the text a person sees or meant.
var (
	// roundedCell is how they show a number of twelve digits or more, such as a phone
	// number: 4.91711E+11.
	roundedCell = agent.Pattern(`^[+-]?([0-9])(?:[.,]([0-9]+))?[eE]\+([0-9]{2})$`)
	// textFormula is how some of them keep a number as text: ="00491".
	textFormula = agent.Pattern(`^="([^"]*)"$`)
	// brokenFormula is the result of a formula that failed.
	brokenFormula = agent.Pattern(`^#(?:REF!|N/A|VALUE!|NAME\?|DIV/0!|NUM!|NULL!|#+)$`)
)

// readCell returns the text of a cell that guardFormula or a spreadsheet has written. issue
// says why it cannot be known.
func readCell(cell string) (text, issue string) {
	if m := textFormula().FindStringSubmatch(cell); m != nil {
		return m[1], ""
	}
	if m := roundedCell().FindStringSubmatch(cell); m != nil {
		whole, fraction := m[1], m[2]
		if digits, _ := strconv.Atoi(m[3]); len(fraction) == digits && cell[0] != '-' {
			return whole + fraction, ""
		}
		return "", "is a number that a spreadsheet has rounded; format the column as text there and enter it again"
	}
	if brokenFormula().MatchString(cell) {
		return "", "is the error of a formula in a spreadsheet"
	}
	return unguardFormula(cell), ""
}

// isRewritten reports whether readCell does not return the cell as it is.
func isRewritten(cell string) bool {
	return strings.ContainsAny(cell, "+#") && (roundedCell().MatchString(cell) || brokenFormula().MatchString(cell))
}
