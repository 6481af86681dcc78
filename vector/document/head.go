package document

import (
	"bytes"
	"maps"
	"slices"
	"unicode/utf8"
)

// CheckHead is Check for the first bytes of a file, before the rest has been
// received.
func CheckHead(name, media string, head []byte) (Format, error) {
	format, err := formatOf(name, media, head)
	if err != nil {
		return "", err
	}
	switch format {
	case FormatPDF:
		return format, checkPDF(head)
	case FormatDOCX:
		if !bytes.HasPrefix(head, []byte("PK\x03\x04")) {
			return format, checkDOCX(head)
		}
		return format, nil
	default:
		if len(head) > 0 && len(bytes.TrimSpace(head)) == 0 {
			return format, nil // the text may start later
		}
		_, err := input{media: media, data: trimPartialRune(head)}.encoding(format)
		return format, err
	}
}

// trimPartialRune removes an incomplete UTF-8 sequence at the end.
func trimPartialRune(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if b := data[len(data)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(data[len(data)-i:]) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// MediaTypes returns the Content-Types of stored files.
func MediaTypes() []string {
	types := map[string]bool{}
	for _, format := range byExtension {
		types[format.MediaType()] = true
	}
	return slices.Sorted(maps.Keys(types))
}

// MediaType returns the Content-Type that files of the format are stored with.
func (f Format) MediaType() string {
	switch f {
	case FormatMarkdown:
		return "text/markdown"
	case FormatJSON:
		return "application/json"
	case FormatCSV:
		return "text/csv"
	case FormatHTML:
		return "text/html"
	case FormatDOCX:
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case FormatPDF:
		return "application/pdf"
	}
	return "text/plain"
}
