package egress

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// MaxUpload limits a request's body with files, in bytes.
const MaxUpload = 25 << 20

// File is a file in the body of a request.
type File struct {
	Name      string // "" in a part: "file"
	MediaType string // "" in a part: application/octet-stream
	Data      []byte
}

// Part is a field of a multipart/form-data body: a file, or a text.
type Part struct {
	Name      string
	File      *File
	Text      string
	MediaType string // of the text; "" sends none
}

// ReadFile reads a file from a JSON value: its bytes in base64, a data URL, or
// {name, mime_type, data} with one of both.
func ReadFile(value any) (File, bool) {
	text, isText := value.(string)
	file := File{}
	if m, ok := value.(map[string]any); ok {
		file.Name, _ = m["name"].(string)
		file.MediaType, _ = m["mime_type"].(string)
		text, isText = m["data"].(string)
	}
	if !isText {
		return file, false
	}
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		head, data, found := strings.Cut(rest, ",")
		media, isBase64 := strings.CutSuffix(head, ";base64")
		if !found || !isBase64 {
			return file, false
		}
		file.MediaType, text = cmp.Or(file.MediaType, media), data
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	file.Data = raw
	return file, err == nil
}

// Multipart writes a multipart/form-data body (RFC 7578) and returns it with its
// media type.
func Multipart(parts []Part) (body []byte, mediaType string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for i := range parts {
		if err := writePart(w, &parts[i]); err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return out.Bytes(), w.FormDataContentType(), err
}

// quotes escapes names as the HTML standard does for multipart/form-data.
var quotes = strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "%0D", "\n", "%0A")

func writePart(w *multipart.Writer, p *Part) error {
	disposition, media, data := `form-data; name="`+quotes.Replace(p.Name)+`"`, p.MediaType, []byte(p.Text)
	if p.File != nil {
		disposition += `; filename="` + quotes.Replace(cmp.Or(p.File.Name, "file")) + `"`
		media, data = p.File.Media(), p.File.Data
	}
	header := textproto.MIMEHeader{"Content-Disposition": {disposition}}
	if media != "" {
		header.Set("Content-Type", media)
	}
	out, err := w.CreatePart(header)
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// Media returns the media type of the file, which is valid in a header.
func (f *File) Media() string {
	kind, params, err := mime.ParseMediaType(f.MediaType)
	if err != nil {
		return "application/octet-stream"
	}
	return mime.FormatMediaType(kind, params)
}
