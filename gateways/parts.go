package gateways

import (
	"fmt"
	"strconv"
	"strings"

	"satchel/agent"
)

// maxParts limits the messages into which one text is split.
const maxParts = 25

// whitespace are the characters at which text may be split.
const whitespace = " \t\r\n"

// sendParts sends the parts of a message after the first m.Skip, one after
// another. key is the same for each attempt of a part, and empty without m.Key.
// An error is returned with the number of parts sent.
func sendParts(message Message, parts []string, one func(text, key string) (Sent, error)) (Sent, error) {
	sent := Sent{Parts: message.Skip}
	if len(parts) > maxParts {
		return sent, agent.Invalid("message", fmt.Sprintf("is too long: it would need more than %d messages", maxParts))
	}
	for i := message.Skip; i < len(parts); i++ {
		key := message.Key
		if key != "" && i > 0 {
			key += "#" + strconv.Itoa(i)
		}
		part, err := one(parts[i], key)
		if err != nil {
			return sent, err
		}
		if sent.ID == "" {
			sent.ID, sent.Channel = part.ID, part.Channel
		}
		sent.Parts = i + 1
	}
	return sent, nil
}

// split splits a text into parts of at most limit UTF-16 code units, which
// platforms count, or less than they count. It splits at the last line break in
// the second half of a part, or else at the last space there, or else between
// characters. The white space at a split is dropped.
func split(text string, limit int) []string {
	var parts []string
	for text = strings.Trim(text, whitespace); text != ""; text = strings.TrimLeft(text, whitespace) {
		end := prefixLength(text, limit)
		if end < len(text) {
			half := text[end/2 : end]
			if at := strings.LastIndexByte(half, '\n'); at > 0 {
				end = end/2 + at
			} else if at := strings.LastIndexByte(half, ' '); at > 0 {
				end = end/2 + at
			}
		}
		parts = append(parts, strings.TrimRight(text[:end], whitespace))
		text = text[end:]
	}
	return parts
}

// prefixLength returns how many bytes of a text are at most limit UTF-16 code
// units, and at least one character.
func prefixLength(text string, limit int) int {
	units := 0
	for i, r := range text {
		units++
		if r > 0xFFFF {
			units++
		}
		if units > limit && i > 0 {
			return i
		}
	}
	return len(text)
}
