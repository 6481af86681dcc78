package rest

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// Limits of a multipart request other than that of its file.
const (
	maxFormField  = 64 << 10
	maxFormFields = 100
)

// FilePartReader reads the files of a multipart request as they arrive; nothing is stored
// on disk. Every read extends the deadline of the connection.
type FilePartReader struct {
	*multipart.Part
	Size    int64 // bytes of files read so far
	form    *multipart.Reader
	control *http.ResponseController
	seen    int
}

// FilePart reads a multipart request up to its file. Text fields named in
// fields are stored there; those after the file are read by Rest.
func FilePart(c echo.Context, name string, fields map[string]string) (*FilePartReader, error) {
	if err := checkMedia(c.Request(), echo.MIMEMultipartForm); err != nil {
		return nil, err
	}
	form, err := c.Request().MultipartReader()
	if err != nil {
		return nil, agent.Errorf(agent.CodeValidation, "the multipart request has no boundary").Because(err)
	}
	f := &FilePartReader{form: form, control: http.NewResponseController(c.Response())}
	if err := f.next(name, fields); err != nil {
		return nil, err
	}
	if f.Part == nil {
		return nil, agent.Invalid(name, "is required: a file in multipart/form-data")
	}
	return f, nil
}

// next reads text fields up to the file called name, or to the end.
func (f *FilePartReader) next(name string, fields map[string]string) error {
	f.Part = nil
	for {
		if err := f.extend(); err != nil {
			return err
		}
		part, err := f.form.NextPart()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return brokenForm(err)
		}
		if f.seen++; f.seen > maxFormFields {
			return agent.Errorf(agent.CodeValidation, "the form has too many fields")
		}
		if name != "" && part.FormName() == name && part.FileName() != "" {
			f.Part = part
			return nil
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
		if err != nil {
			return brokenForm(err)
		}
		if len(value) > maxFormField {
			return agent.Invalid(agent.Clip(part.FormName(), 50), "is too long for a form field")
		}
		if _, known := fields[part.FormName()]; known {
			fields[part.FormName()] = string(value)
		}
	}
}

// NextFile advances to the next file called name, and reports whether there is
// one. The unread rest of the previous file is skipped.
func (f *FilePartReader) NextFile(name string, fields map[string]string) (bool, error) {
	err := f.next(name, fields)
	return f.Part != nil, err
}

// Rest reads the text fields after the file.
func (f *FilePartReader) Rest(fields map[string]string) error { return f.next("", fields) }

func (f *FilePartReader) extend() error {
	err := f.control.SetReadDeadline(time.Now().Add(ReadTimeout))
	err = errors.Join(err, f.control.SetWriteDeadline(time.Now().Add(ReadTimeout+WriteTimeout)))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// Read reads the file.
func (f *FilePartReader) Read(p []byte) (int, error) {
	if err := f.extend(); err != nil {
		return 0, err
	}
	n, err := f.Part.Read(p)
	f.Size += int64(n)
	if err != nil && err != io.EOF {
		err = brokenForm(err)
	}
	return n, err
}

func brokenForm(err error) error {
	return agent.Errorf(agent.CodeValidation, "the multipart request is invalid or incomplete").Because(err)
}
