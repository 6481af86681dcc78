package document

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"satchel/agent/charset"
)

var bomUTF8 = []byte(charset.BOM)

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
		if charset.IsUTF16(in.data) && len(in.data)%2 != 0 && in.fallback == reject {
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
	if charset.IsUTF16(in.data) {
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
	case declared != nil || valid || in.fallback == guess && charset.MostlyUTF8(data):
		return declared, nil
	case in.fallback == guess:
		return charset.Guess(data), nil
	}
	return nil, rejected("is neither UTF-8 nor UTF-16 text")
}

// declared returns the encoding that the Content-Type or an HTML page
// declares, or nil for none and for Unicode. A page's declaration is ignored
// if its bytes are valid UTF-8 without escape characters (which ISO-2022-JP
// has).
func (in input) declared(format Format, validUTF8 bool) encoding.Encoding {
	_, params, _ := mime.ParseMediaType(in.media)
	enc := charset.Named(params["charset"])
	if enc == nil && format == FormatHTML && (!validUTF8 || bytes.IndexByte(in.data, 0x1b) >= 0) {
		enc = charset.Named(charset.Declared(in.data))
	}
	return enc
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
