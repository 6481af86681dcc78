package document

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"satchel/agent/markup"
)

var (
	bomUTF8    = []byte("\xEF\xBB\xBF")
	bomUTF16LE = []byte("\xFF\xFE")
	bomUTF16BE = []byte("\xFE\xFF")
)

// fallback says what to do with text that is not Unicode and declares no
// other character set.
type fallback int

const (
	reject fallback = iota // it is an error
	guess                  // take the likeliest character set: such text is never an error
)

// decode returns the input as UTF-8 without a byte order mark. UTF-8 is
// returned uncopied.
func (in input) decode(format Format) ([]byte, error) {
	enc, err := in.encoding(format)
	if err != nil {
		return nil, err
	}
	data := bytes.TrimPrefix(in.data, bomUTF8)
	if enc != nil {
		if isUTF16(in.data) && len(in.data)%2 != 0 && in.fallback == reject {
			return nil, broken("the file is UTF-16 text with half a character at its end")
		}
		if data, err = transcode(in.data, enc, in.limits.Text); err != nil {
			return nil, err
		}
	}
	switch {
	case len(data) > in.limits.Text:
		return nil, tooMuchText(in.limits.Text)
	case in.fallback == guess:
		return bytes.ToValidUTF8(data, []byte("\uFFFD")), nil
	case enc != nil && bytes.IndexByte(data, 0) >= 0:
		return nil, refused("is binary and no text")
	}
	return data, nil
}

// encoding returns the encoding of the input, nil for UTF-8. A byte order mark
// wins over the Content-Type, which wins over what a page declares, as in
// browsers; but a text that is UTF-8 is read as UTF-8 whatever the page says.
// Errors are those of Check.
func (in input) encoding(format Format) (encoding.Encoding, error) {
	if isUTF16(in.data) {
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), nil
	}
	data := bytes.TrimPrefix(in.data, bomUTF8)
	switch {
	case in.fallback == guess:
	case len(bytes.TrimSpace(data)) == 0:
		return nil, refused("is empty")
	case bytes.IndexByte(data, 0) >= 0:
		return nil, refused("is binary and no text")
	}
	var declared encoding.Encoding
	valid := utf8.Valid(data)
	if marked := len(data) < len(in.data); !marked {
		declared = in.declared(format, valid)
	}
	switch {
	case declared != nil || valid || in.fallback == guess && mostlyUTF8(data):
		return declared, nil
	case in.fallback == guess:
		return guessEncoding(data), nil
	}
	return nil, refused("is neither UTF-8 nor UTF-16 text")
}

// declared returns the encoding that the Content-Type or an HTML page names, nil
// for none and for Unicode. A page is not believed when its bytes are UTF-8 and
// hold no escape, as ISO-2022-JP does.
func (in input) declared(format Format, validUTF8 bool) encoding.Encoding {
	_, params, _ := mime.ParseMediaType(in.media)
	enc := legacy(params["charset"])
	if enc == nil && format == FormatHTML && (!validUTF8 || bytes.IndexByte(in.data, 0x1b) >= 0) {
		enc = legacy(metaCharset(in.data[:min(len(in.data), 8<<10)]))
	}
	return enc
}

func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, bomUTF16LE) || bytes.HasPrefix(data, bomUTF16BE)
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

// metaCharset finds the charset of a meta tag.
func metaCharset(head []byte) string {
	for r := markup.New(head); ; {
		switch r.Next() {
		case markup.End:
			return ""
		case markup.StartTag:
			if string(r.Name()) != "meta" {
				continue
			}
			for key, value, ok := r.Attr(); ok; key, value, ok = r.Attr() {
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

// mostlyUTF8 reports whether a text is UTF-8 but for a few characters that were
// cut in half and the like.
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

// guessEncoding finds an encoding by the frequencies of the text's letters.
func guessEncoding(text []byte) encoding.Encoding {
	found, err := chardet.NewHtmlDetector().DetectBest(text[:min(len(text), maxGuess)])
	if err == nil && found.Confidence >= 50 {
		if enc, _ := charset.Lookup(found.Charset); enc != nil {
			return enc
		}
	}
	return charmap.Windows1252
}

// transcode returns data as UTF-8, reading only as much as the limit allows.
func transcode(data []byte, enc encoding.Encoding, limit int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(min(len(data)+len(data)/2, limit))
	// A decoder replaces what it cannot read: the only error is io.EOF.
	_, _ = io.Copy(&out, io.LimitReader(transform.NewReader(bytes.NewReader(data), enc.NewDecoder()), int64(limit)+1))
	if out.Len() > limit {
		return nil, tooMuchText(limit)
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
