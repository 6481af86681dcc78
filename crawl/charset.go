package crawl

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
)

// mediaType is the bare media type of a response, found in its first bytes
// when the header does not say.
func mediaType(header string, body []byte) string {
	if media, _, err := mime.ParseMediaType(header); err == nil {
		return media
	}
	if bare, _, _ := strings.Cut(header, ";"); strings.Contains(bare, "/") {
		return strings.ToLower(strings.TrimSpace(bare))
	}
	media, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	return media
}

// isTextType reports whether a media type holds text that a crawl reads. Without a
// type the first bytes decide later.
func isTextType(media string) bool {
	switch media {
	case "", "text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown", "application/pdf":
		return true
	}
	return false
}

// sniffLen is how many bytes of a body its type is sniffed from.
const sniffLen = 1024

// mislabelled reports whether a body is not the text that its header says: its first
// bytes are those of a picture, an archive and the like, or a tenth of them
// stand for no character.
func mislabelled(body []byte) bool {
	sniffed, _, _ := strings.Cut(http.DetectContentType(body), ";")
	if sniffed != "application/octet-stream" {
		return !strings.HasPrefix(sniffed, "text/")
	}
	control, head := 0, body[:min(len(body), sniffLen)]
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b { // ISO-2022-JP has escapes
			control++
		}
	}
	return 10*control > len(head)
}

// toUTF8 decodes text: by its byte order mark, by what the header or the page
// declares, as UTF-8 when it is valid UTF-8, and else by a guess from the
// letters' frequencies. A header that says UTF-8 of what is not UTF-8
// is ignored. header is the Content-Type.
func toUTF8(body []byte, header string) []byte {
	enc, name, certain := charset.DetermineEncoding(body, header)
	valid := utf8.Valid(body) || name == "utf-8" && mostlyUTF8(body)
	if name == "utf-8" && !valid {
		enc, name, certain = charset.DetermineEncoding(body, "")
	}
	switch {
	case certain && name != "utf-8":
	case valid:
		name = "utf-8"
	case name == "utf-8" || name == "windows-1252": // that is, nothing is declared
		if guess, err := chardet.NewHtmlDetector().DetectBest(body[:min(len(body), maxGuess)]); err == nil && guess.Confidence >= 50 {
			if e, n := charset.Lookup(guess.Charset); e != nil {
				enc, name = e, n
			}
		}
	}
	if name == "utf-8" && utf8.Valid(body) {
		return trimBOM(body)
	}
	if name != "utf-8" {
		if text, err := enc.NewDecoder().Bytes(body); err == nil {
			return text
		}
	}
	return bytes.ToValidUTF8(trimBOM(body), []byte("\uFFFD"))
}

// mostlyUTF8 reports whether what is no UTF-8 in a text is an accident: a letter
// that was cut in half and the like.
func mostlyUTF8(text []byte) bool {
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

// maxGuess bounds the bytes that a guess is made from.
const maxGuess = 64 << 10

func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\uFEFF")) }
