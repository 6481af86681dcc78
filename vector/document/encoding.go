package document

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

var (
	bomUTF8    = []byte("\xEF\xBB\xBF")
	bomUTF16LE = []byte("\xFF\xFE")
	bomUTF16BE = []byte("\xFE\xFF")
)

// declaredCharset returns the character set that the Content-Type or, for
// HTML, the page itself names; "" when there is none.
func declaredCharset(format Format, media string, data []byte) string {
	if _, params, err := mime.ParseMediaType(media); err == nil && params["charset"] != "" {
		return params["charset"]
	}
	if format != FormatHTML {
		return ""
	}
	return metaCharset(data[:min(len(data), 8<<10)])
}

// metaCharset finds the charset of a meta tag. Package charset has the same
// scan, but reports what it found no differently from what it guesses, and a
// guess is not wanted: it makes text out of any bytes.
func metaCharset(head []byte) string {
	z := html.NewTokenizer(bytes.NewReader(head))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := z.Token()
			if tag.Data != "meta" {
				continue
			}
			for _, attr := range tag.Attr {
				if attr.Key == "charset" {
					return attr.Val
				}
				_, params, err := mime.ParseMediaType(attr.Val)
				if attr.Key == "content" && err == nil && params["charset"] != "" {
					return params["charset"]
				}
			}
		}
	}
}

// legacy returns the named encoding; nil for "", unknown names and UTF-8, and
// for UTF-16, which is known by its byte order mark alone.
func legacy(name string) encoding.Encoding {
	enc, canonical := charset.Lookup(name)
	switch canonical {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return nil
	}
	return enc
}

func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, bomUTF16LE) || bytes.HasPrefix(data, bomUTF16BE)
}

// checkText tells at once whether bytes can be text. UTF-16 passes: whether it
// is whole is found by decoding it.
func checkText(data []byte, declared string) error {
	if isUTF16(data) {
		return nil
	}
	data = bytes.TrimPrefix(data, bomUTF8)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return refused("is empty")
	case bytes.IndexByte(data, 0) >= 0:
		return refused("is binary and no text")
	case legacy(declared) == nil && !utf8.Valid(data):
		return refused("is neither UTF-8 nor UTF-16 text")
	}
	return nil
}

// decode returns data as UTF-8 without a byte order mark, which wins over the
// declared character set as it does in browsers. UTF-8 is returned uncopied.
func decode(data []byte, declared string, limit int) ([]byte, error) {
	if err := checkText(data, declared); err != nil {
		return nil, err
	}
	switch {
	case isUTF16(data):
		if len(data)%2 != 0 {
			return nil, broken("the file is UTF-16 text with half a character at its end")
		}
		return transcode(data, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), limit)
	case bytes.HasPrefix(data, bomUTF8):
		data = data[len(bomUTF8):]
		if !utf8.Valid(data) {
			return nil, broken("the file begins as UTF-8 text and holds bytes that are none")
		}
	case legacy(declared) != nil:
		return transcode(data, legacy(declared), limit)
	}
	if len(data) > limit {
		return nil, tooMuchText(limit)
	}
	return data, nil
}

// transcode turns data into UTF-8, reading only as much as the limit allows.
func transcode(data []byte, enc encoding.Encoding, limit int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(min(len(data)+len(data)/2, limit))
	r := transform.NewReader(bytes.NewReader(data), enc.NewDecoder())
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if out.Len()+n > limit {
			return nil, tooMuchText(limit)
		}
		out.Write(buf[:n])
		if err != nil { // a decoder replaces what it cannot read: this is io.EOF
			break
		}
	}
	if bytes.IndexByte(out.Bytes(), 0) >= 0 {
		return nil, refused("is binary and no text")
	}
	return out.Bytes(), nil
}

// lines returns data as a string whose lines end in \n, whatever they ended
// in: \r\n, or \r alone as on old Macs.
func lines(data []byte) string {
	if bytes.IndexByte(data, '\r') < 0 {
		return string(data)
	}
	var b strings.Builder
	b.Grow(len(data))
	for {
		i := bytes.IndexByte(data, '\r')
		if i < 0 {
			b.Write(data)
			return b.String()
		}
		b.Write(data[:i])
		b.WriteByte('\n')
		data = bytes.TrimPrefix(data[i+1:], []byte("\n"))
	}
}
