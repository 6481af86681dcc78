package mailbox

import (
	"bytes"
	"encoding/base64"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"

	"satchel/agent"
)

var encodedWord = agent.Pattern(`=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=`)

// Decode decodes the encoded words (RFC 2047) of a header, in every character set
// that is known. The others stay as they are.
func Decode(header string) string {
	found := encodedWord().FindAllStringSubmatchIndex(header, -1)
	if found == nil {
		return header
	}
	var out strings.Builder
	var row []byte // of words in a row with the same character set, which may split a character
	label, start, at := "", 0, 0
	flush := func() {
		if text, ok := toUTF8(label, row); ok {
			out.WriteString(text)
		} else {
			out.WriteString(header[start:at])
		}
	}
	for i, m := range found {
		between, next := header[at:m[0]], charsetOf(header[m[2]:m[3]])
		inRow := i > 0 && strings.TrimSpace(between) == ""
		if i > 0 && (!inRow || next != label) {
			flush()
			row = nil
		}
		if !inRow {
			out.WriteString(between)
		}
		if row == nil {
			label, start = next, m[0]
		}
		row, at = append(row, wordBytes(header[m[4]], header[m[6]:m[7]])...), m[1]
	}
	flush()
	out.WriteString(header[at:])
	return out.String()
}

// charsetOf returns the character set of an encoded word, without the language
// that RFC 2231 allows after it.
func charsetOf(label string) string {
	label, _, _ = strings.Cut(strings.ToLower(label), "*")
	return label
}

// wordBytes returns the bytes of an encoded word: base64, also without padding, or
// quoted.
func wordBytes(kind byte, text string) []byte {
	if kind == 'b' || kind == 'B' {
		text = strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
		raw, _ := base64.RawStdEncoding.DecodeString(text) // what precedes an invalid character
		return raw
	}
	raw := []byte(strings.ReplaceAll(text, "_", " "))
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] == '=' && i+2 < len(raw) {
			if high, low := hexDigit(raw[i+1]), hexDigit(raw[i+2]); high >= 0 && low >= 0 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, raw[i])
	}
	return out
}

func hexDigit(c byte) int {
	return strings.IndexByte("0123456789abcdef", bytes.ToLower([]byte{c})[0])
}

// otherNames are names of character sets that no register has.
var otherNames = map[string]string{
	"cp932":          "shift_jis",
	"cp936":          "gbk",
	"cp949":          "euc-kr",
	"cp950":          "big5",
	"iso-2022-jp-ms": "iso-2022-jp",
	"iso-2022-jp-1":  "iso-2022-jp",
	"iso-2022-jp-2":  "iso-2022-jp",
	"iso-2022-jp-3":  "iso-2022-jp",
	"utf8mb4":        "utf-8",
}

// toUTF8 decodes text in a character set.
func toUTF8(label string, text []byte) (string, bool) {
	if name, ok := otherNames[label]; ok {
		label = name
	}
	enc, _ := charset.Lookup(label)
	if enc == nil || enc == encoding.Replacement {
		if enc, _ = ianaindex.IANA.Encoding(label); enc == nil {
			return "", false
		}
	}
	decoded, err := enc.NewDecoder().Bytes(text)
	if err != nil {
		return "", false
	}
	return string(bytes.ToValidUTF8(decoded, []byte("\uFFFD"))), true
}
