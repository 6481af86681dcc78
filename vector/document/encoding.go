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

// fallback is how to handle text that is not Unicode and declares no character
// set.
type fallback int

const (
	reject fallback = iota // return an error
	guess                  // use the most likely character set; never an error
)

// decode returns the input as UTF-8 without a byte order mark. UTF-8 is not
// copied.
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
		return nil, rejected("is binary, not text")
	}
	return data, nil
}

// encoding returns the encoding of the input, nil for UTF-8. As in browsers, a
// byte order mark takes precedence over the Content-Type, and that over a
// declaration in the page; but text that is valid UTF-8 is read as UTF-8
// whatever the page declares. Errors are those of Check.
func (in input) encoding(format Format) (encoding.Encoding, error) {
	if isUTF16(in.data) {
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM), nil
	}
	data := bytes.TrimPrefix(in.data, bomUTF8)
	switch {
	case in.fallback == guess:
	case len(bytes.TrimSpace(data)) == 0:
		return nil, rejected("is empty")
	case bytes.IndexByte(data, 0) >= 0:
		return nil, rejected("is binary, not text")
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
	return nil, rejected("is neither UTF-8 nor UTF-16 text")
}

// declared returns the encoding that the Content-Type or an HTML page
// declares, or nil for none and for Unicode. A page's declaration is ignored
// if its bytes are valid UTF-8 without escape characters (which ISO-2022-JP
// has).
func (in input) declared(format Format, validUTF8 bool) encoding.Encoding {
	_, params, _ := mime.ParseMediaType(in.media)
	enc := encodingNamed(params["charset"])
	if enc == nil && format == FormatHTML && (!validUTF8 || bytes.IndexByte(in.data, 0x1b) >= 0) {
		enc = encodingNamed(metaCharset(in.data[:min(len(in.data), 8<<10)]))
	}
	return enc
}

func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, bomUTF16LE) || bytes.HasPrefix(data, bomUTF16BE)
}

// encodingNamed returns the encoding with a name, or nil for "", unknown names and
// UTF-8, and for UTF-16, which is only detected by its byte order mark.
func encodingNamed(name string) encoding.Encoding {
	enc, canonical := charset.Lookup(name)
	switch canonical {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return nil
	}
	return enc
}

// metaCharset returns the charset of a meta tag.
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

// mostlyUTF8 reports whether a text is UTF-8 except for a few broken
// characters.
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

// maxGuess limits the bytes that the encoding is guessed from.
const maxGuess = 64 << 10

// guessEncoding guesses an encoding by letter frequencies.
func guessEncoding(text []byte) encoding.Encoding {
	found, err := chardet.NewHtmlDetector().DetectBest(text[:min(len(text), maxGuess)])
	if err == nil && found.Confidence >= 50 {
		if enc, _ := charset.Lookup(found.Charset); enc != nil {
			return enc
		}
	}
	return charmap.Windows1252
}

// transcode returns data as UTF-8 and stops at the limit.
func transcode(data []byte, enc encoding.Encoding, limit int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(min(len(data)+len(data)/2, limit))
	// Decoders replace invalid bytes, so the only error is io.EOF.
	_, _ = io.Copy(&out, io.LimitReader(transform.NewReader(bytes.NewReader(data), enc.NewDecoder()), int64(limit)+1))
	if out.Len() > limit {
		return nil, tooMuchText(limit)
	}
	return out.Bytes(), nil
}

// lines returns data with \n line endings in place of \r\n and \r.
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
