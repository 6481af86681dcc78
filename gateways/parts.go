package gateways

import (
	"fmt"
	"strconv"
	"strings"

	"satchel/agent"
)

// maxParts bounds the messages of a platform that one text is cut into.
const maxParts = 25

// whitespace are what a text may be cut at.
const whitespace = " \t\r\n"

// sendParts sends the parts of a message, each of at most limit UTF-16 code
// units, one after the other, those behind m.Skip. key is the same each time
// that the same part is tried; empty without m.Key. An error is returned with
// how many parts are out.
func sendParts(m Message, limit int, one func(text, key string) (Sent, error)) (Sent, error) {
	parts := split(m.Text, limit)
	sent := Sent{Parts: m.Skip}
	if len(parts) > maxParts {
		return sent, agent.Invalid("message", fmt.Sprintf("is longer than %d messages of the platform, of %d characters each", maxParts, limit))
	}
	for i := m.Skip; i < len(parts); i++ {
		key := m.Key
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

// split cuts a text into parts of at most limit UTF-16 code units, which is
// what platforms count, or less than they do. It cuts at the last line break in
// the second half of a part, else at the last space there, else between
// characters; the white space that it cuts at is dropped.
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

// prefixLength returns how many bytes of a text make up at most limit UTF-16
// code units, and at least one character.
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
