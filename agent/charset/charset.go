// Package charset decodes text whose character set is declared, by its sender or in the
// text, or guessed.
package charset

import (
	"bytes"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"satchel/agent"
	"satchel/agent/markup"
)

// BOM is the byte order mark of UTF-8.
const BOM = "\xEF\xBB\xBF"

// maxHead is in how many bytes of a text the declaration of its character set is sought.
const maxHead = 8 << 10

// controls are bytes that UTF-16 of most scripts has, and other text has not.
const controls = "\x00\x01\x02\x03\x04\x05\x06\x07\x08"

// escape begins a change of characters in ISO-2022, whose texts are valid UTF-8.
const escape = 0x1b

// Decode returns a text as valid UTF-8 without a byte order mark. As in browsers, the mark
// takes precedence over the charset of the Content-Type, and that over a declaration in
// HTML or XML; text without any is UTF-8 or guessed. UTF-8 is not copied.
func Decode(text []byte, contentType string) []byte {
	if enc := Find(text, contentType); enc != nil {
		text, _ = enc.NewDecoder().Bytes(text) // decoders replace what is not valid
	}
	return bytes.ToValidUTF8(bytes.TrimPrefix(text, []byte(BOM)), []byte("\uFFFD"))
}

// Find returns the encoding of a text as Decode reads it, nil for UTF-8.
func Find(text []byte, contentType string) encoding.Encoding {
	media, params, _ := mime.ParseMediaType(contentType)
	wellFormed := utf8.Valid(text) && bytes.IndexByte(text, escape) < 0
	switch {
	case IsUTF16(text):
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	case unmarkedUTF16(text) != nil:
		return unmarkedUTF16(text)
	case bytes.HasPrefix(text, []byte(BOM)), wellFormed && isJSON(media): // which some send as ISO 8859-1
		return nil
	}
	if enc := Named(params["charset"]); enc != nil {
		return enc
	}
	if enc := utf16Named(params["charset"]); enc != nil && bytes.ContainsAny(text, controls) {
		return enc
	}
	if !wellFormed && (media == "" || isMarkup(media)) {
		if enc := Named(Declared(text)); enc != nil {
			return enc
		}
	}
	if utf8.Valid(text) || MostlyUTF8(text) {
		return nil
	}
	return Guess(text)
}

// IsText reports whether a Content-Type is that of text.
func IsText(contentType string) bool {
	media, params, _ := mime.ParseMediaType(contentType)
	return params["charset"] != "" ||
		isJSON(media) ||
		isMarkup(media) ||
		strings.HasPrefix(media, "text/") ||
		slices.Contains([]string{"application/javascript", "application/x-www-form-urlencoded"}, media)
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func isMarkup(media string) bool {
	return strings.HasSuffix(media, "html") || strings.HasSuffix(media, "xml")
}

// IsUTF16 reports whether a text begins with the byte order mark of UTF-16.
func IsUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\xFF\xFE")) || bytes.HasPrefix(text, []byte("\xFE\xFF"))
}

// unmarkedUTF16 returns the encoding of JSON or markup in UTF-16 without a mark, which its
// first two characters show (RFC 4627, section 3), or nil.
func unmarkedUTF16(text []byte) encoding.Encoding {
	if len(text) < 4 || len(text)%2 != 0 {
		return nil
	}
	begins := func(i int) bool {
		return bytes.IndexByte([]byte("{[<"), text[i]) >= 0 && text[i+2] != 0
	}
	switch {
	case text[1] == 0 && text[3] == 0 && begins(0):
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case text[0] == 0 && text[2] == 0 && begins(1):
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// Named returns the encoding with a name, or nil for "", unknown names and UTF-8, and for
// UTF-16, whose texts begin with a mark.
func Named(name string) encoding.Encoding {
	enc, canonical := charset.Lookup(name)
	switch canonical {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return nil
	}
	return enc
}

// utf16Named returns the encoding of UTF-16 without a mark, if this is its name.
func utf16Named(name string) encoding.Encoding {
	if enc, canonical := charset.Lookup(name); strings.HasPrefix(canonical, "utf-16") {
		return enc
	}
	return nil
}

// xmlDeclaration matches the declaration of XML with its encoding.
var xmlDeclaration = agent.Pattern(`^\s*<\?xml\s[^>]*\bencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// Declared returns the name of the character set in a declaration of XML or a meta tag, ""
// for none.
func Declared(text []byte) string {
	head := text[:min(len(text), maxHead)]
	if found := xmlDeclaration().FindSubmatch(head); found != nil {
		return string(found[1])
	}
	for reader := markup.New(head); ; {
		switch reader.Next() {
		case markup.End:
			return ""
		case markup.StartTag:
			if string(reader.Name()) != "meta" {
				continue
			}
			for key, value, ok := reader.Attr(); ok; key, value, ok = reader.Attr() {
				if string(key) == "charset" {
					return string(value)
				}
				_, params, err := mime.ParseMediaType(string(value))
				if string(key) == "content" && err == nil && params["charset"] != "" {
					return params["charset"]
				}
			}
		}
	}
}

// MostlyUTF8 reports whether a text is UTF-8 except for a few broken characters.
func MostlyUTF8(text []byte) bool {
	good, bad := 0, 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		text = text[size:]
	}
	return good > 10*bad
}

// maxGuess limits the bytes that an encoding is guessed from.
const maxGuess = 64 << 10

// Guess returns the most likely encoding of a text that is not UTF-8, by the frequencies
// of its letters.
func Guess(text []byte) encoding.Encoding {
	found, err := chardet.NewHtmlDetector().DetectBest(text[:min(len(text), maxGuess)])
	if err == nil && (found.Confidence >= 50 || !mostlyASCII(text)) {
		if enc, _ := charset.Lookup(found.Charset); enc != nil {
			return enc
		}
	}
	return charmap.Windows1252
}

// mostlyASCII reports whether a text has more letters of ASCII than other bytes, as texts
// in Latin script do.
func mostlyASCII(text []byte) bool {
	letters, others := 0, 0
	for _, b := range text {
		switch {
		case b >= utf8.RuneSelf:
			others++
		case 'a' <= b|0x20 && b|0x20 <= 'z':
			letters++
		}
	}
	return letters > others
}
