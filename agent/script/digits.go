package script

import (
	"strconv"
	"strings"
)

// safeDigits is how many digits every integer of JavaScript keeps.
const safeDigits = 15

// changedInteger returns a warning about the first integer in a JSON text that a number of
// JavaScript cannot hold, "" if there is none.
func changedInteger(text []byte) string {
	for at := 0; at < len(text); at++ {
		switch char := text[at]; {
		case char == '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case char == '-' || isDigit(char):
			from := at
			for at+1 < len(text) && (isDigit(text[at+1]) || strings.IndexByte(".eE+-", text[at+1]) >= 0) {
				at++
			}
			if at-from < safeDigits {
				continue
			}
			given := string(text[from : at+1])
			number, err := strconv.ParseFloat(given, 64)
			if err != nil || strings.ContainsAny(given, ".eE") {
				continue
			}
			if held := strconv.FormatFloat(number, 'f', -1, 64); held != given {
				return "the number " + given + " became " + held +
					": numbers in JavaScript are exact up to 9007199254740991, so send it as text"
			}
		}
	}
	return ""
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
