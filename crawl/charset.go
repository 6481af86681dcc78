package crawl

import (
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

// wanted tells whether a media type holds text that a crawl reads. Without a
// type the first bytes decide later.
func wanted(media string) bool {
	switch media {
	case "", "text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown", "application/pdf":
		return true
	}
	return false
}

// toUTF8 decodes text: by its byte order mark, by what the header or the page
// declares, as UTF-8 when it is valid UTF-8, and else by a guess from the
// letters' frequencies. header is the Content-Type.
func toUTF8(body []byte, header string) []byte {
	enc, name, certain := charset.DetermineEncoding(body, header)
	if !certain {
		if utf8.Valid(body) {
			return body
		}
		if guess, err := chardet.NewHtmlDetector().DetectBest(body); err == nil && guess.Confidence >= 50 {
			if e, n := charset.Lookup(guess.Charset); e != nil {
				enc, name = e, n
			}
		}
	}
	if name != "utf-8" {
		if text, err := enc.NewDecoder().Bytes(body); err == nil {
			return text
		}
	}
	return []byte(strings.ToValidUTF8(strings.TrimPrefix(string(body), "\uFEFF"), "\uFFFD"))
}
