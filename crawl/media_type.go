package crawl

import (
	"mime"
	"net/http"
	"strings"
)

// mediaType returns the bare media type of a response, detected from its first
// bytes if the header has none.
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

// isTextType reports whether a crawl reads a media type as text. Without a type
// the first bytes decide later.
func isTextType(media string) bool {
	switch media {
	case "", "text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown", "application/pdf":
		return true
	}
	return false
}

// sniffLen is how many bytes of a body are used to detect its type.
const sniffLen = 1024

// mislabelled reports whether a body is not the text that its header declares:
// its first bytes are those of an image, an archive or similar, or a tenth of
// them do not represent characters.
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
