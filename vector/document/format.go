package document

import (
	"bytes"
	"mime"
	"path"
	"strings"

	"satchel/agent"
)

// Format is a supported file format.
type Format string

// The supported formats.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatJSON     Format = "json" // and JSON Lines
	FormatCSV      Format = "csv"  // also separated by tabs or semicolons
	FormatHTML     Format = "html"
	FormatDOCX     Format = "docx"
	FormatPDF      Format = "pdf"
)

// byExtension lists every accepted extension.
var byExtension = map[string]Format{
	".txt": FormatText, ".text": FormatText,
	".md": FormatMarkdown, ".markdown": FormatMarkdown,
	".json": FormatJSON, ".jsonl": FormatJSON, ".ndjson": FormatJSON,
	".csv": FormatCSV, ".tsv": FormatCSV,
	".html": FormatHTML, ".htm": FormatHTML, ".xhtml": FormatHTML,
	".docx": FormatDOCX,
	".pdf":  FormatPDF,
}

// byMedia lists the media types that determine the format if a name has no
// extension. text/plain and application/octet-stream are not included: clients
// send those for anything.
var byMedia = map[string]Format{
	"text/markdown":             FormatMarkdown,
	"application/json":          FormatJSON,
	"application/x-ndjson":      FormatJSON,
	"text/csv":                  FormatCSV,
	"text/tab-separated-values": FormatCSV,
	"text/html":                 FormatHTML,
	"application/xhtml+xml":     FormatHTML,
	"application/pdf":           FormatPDF,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document": FormatDOCX,
}

// TextExtensions are the extensions of files that are text. The others, DOCX and
// PDF, can take long to read.
func TextExtensions() []string {
	var list []string
	for extension, format := range byExtension {
		if format != FormatDOCX && format != FormatPDF {
			list = append(list, extension)
		}
	}
	return list
}

// InChild reports whether Read reads a file in a child process.
func InChild(name, media string, data []byte) bool {
	format, err := formatOf(name, media, data)
	return err == nil && extractors[format] != nil
}

// Check determines a file's format from its name's extension, or else from
// media (a Content-Type, or ""), or else from its bytes, and checks whether the
// bytes can be of that format. It immediately returns errors that need not wait
// for Read: an *agent.Error with agent.CodeUnsupportedFormat for a format that
// cannot be read, and with agent.CodeValidation for an empty file, a text that
// is not UTF-8 or UTF-16, or an invalid .docx or .pdf.
func Check(name, media string, data []byte) (Format, error) {
	format, err := formatOf(name, media, data)
	if err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return "", rejected("is empty")
	}
	switch format {
	case FormatPDF:
		return format, checkPDF(data)
	case FormatDOCX:
		return format, checkDOCX(data)
	default:
		_, err := input{media: media, data: data}.encoding(format)
		return format, err
	}
}

func formatOf(name, media string, data []byte) (Format, error) {
	ext := strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
	if format, ok := byExtension[ext]; ok {
		return format, nil
	}
	if ext == "" {
		mediaType, _, _ := mime.ParseMediaType(media)
		if format, ok := byMedia[mediaType]; ok {
			return format, nil
		}
		if format, ok := sniff(data); ok {
			return format, nil
		}
	}
	return "", agent.Errorf(
		agent.CodeUnsupportedFormat,
		"files of this format cannot be read; use .txt, .md, .json, .csv, .html, .docx or .pdf",
	).
		With("field", "file").With("issue", "has an unsupported format")
}

// sniff detects the format of a file without an extension.
func sniff(data []byte) (Format, bool) {
	head := bytes.ToLower(bytes.TrimSpace(data[:min(len(data), 512)]))
	_, noText := input{data: data}.encoding(FormatText)
	switch {
	case checkPDF(data) == nil:
		return FormatPDF, true
	case checkDOCX(data) == nil:
		return FormatDOCX, true
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")):
		return FormatHTML, true
	case noText == nil:
		return FormatText, true
	}
	return "", false
}

// checkPDF looks for the header, which readers accept anywhere in the first
// kilobyte (ISO 32000-1, annex H, note 13).
func checkPDF(data []byte) error {
	if !bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-")) {
		return rejected("is not a PDF file")
	}
	return nil
}
