package rest

import (
	"context"
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

// A multipart request may take uploadGrace, and longer while it brings minUploadRate bytes a
// second on average.
const (
	uploadGrace   = 5 * time.Minute
	minUploadRate = 16 << 10
)

// FilePartReader reads the files of a multipart request as they arrive; nothing is stored
// on disk. Every read extends the deadline of the connection.
type FilePartReader struct {
	*multipart.Part
	Size    int64 // bytes of files read so far
	call    *Call
	form    *multipart.Reader
	control *http.ResponseController
	began   time.Time
	seen    int
}

// FilePart reads a multipart request up to its file. Text fields named in
// fields are stored there; those after the file are read by Rest.
func FilePart(call *Call, name string, fields map[string]string) (*FilePartReader, error) {
	request := call.HTTP.Request()
	if err := checkMedia(request, echo.MIMEMultipartForm); err != nil {
		return nil, err
	}
	if err := checkEncoding(request); err != nil {
		return nil, err
	}
	form, err := request.MultipartReader()
	if err != nil {
		return nil, agent.Errorf(agent.CodeValidation, "the multipart request has no boundary").Because(err)
	}
	f := &FilePartReader{
		call:    call,
		form:    form,
		control: http.NewResponseController(call.HTTP.Response()),
		began:   time.Now(),
	}
	if err := f.next(name, fields); err != nil {
		return nil, err
	}
	if f.Part == nil {
		return nil, agent.Invalid(name, "is required: a file in multipart/form-data")
	}
	return f, nil
}

// FilePartUpTo is FilePart for a request of at most most bytes with all its files.
func FilePartUpTo(c *Call, most int64, name string, fields map[string]string) (*FilePartReader, error) {
	r := c.HTTP.Request()
	r.Body = http.MaxBytesReader(c.HTTP.Response(), r.Body, most)
	return FilePart(c, name, fields)
}

// next reads text fields up to the file called name, or to the end.
func (f *FilePartReader) next(name string, fields map[string]string) error {
	f.Part = nil
	for {
		if err := f.extend(); err != nil {
			return err
		}
		part, err := f.form.NextPart()
		if errors.Is(err, io.EOF) && errors.Unwrap(err) == nil {
			return nil // a wrapped EOF is a form that was cut short
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
		value, err := f.call.Body.readUpTo(f.call, part, -1, maxFormField)
		switch agent.ErrorCode(err) {
		case "":
		case agent.CodeFileTooLarge:
			return agent.Invalid(agent.Clip(part.FormName(), 50), "is too long for a form field")
		case agent.CodeUnavailable:
			return err
		default:
			return brokenForm(err)
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
func (f *FilePartReader) Rest(fields map[string]string) error {
	return f.next("", fields)
}

// extend extends the deadlines of the connection, within the time that the request may take.
func (f *FilePartReader) extend() error {
	until := time.Now().Add(ReadTimeout)
	if end := f.began.Add(uploadGrace + time.Duration(f.Size/minUploadRate)*time.Second); end.Before(until) {
		until = end
	}
	err := errors.Join(f.control.SetReadDeadline(until), f.control.SetWriteDeadline(until.Add(WriteTimeout)))
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
	if err != nil && !errors.Is(err, io.EOF) {
		err = brokenForm(err)
	}
	return n, err
}

// ReadText reads at most most bytes into memory; those of a file count as a body.
func ReadText(r io.Reader, most int64) ([]byte, error) {
	if f, ok := r.(*FilePartReader); ok {
		return f.call.Body.readUpTo(f.call, f, -1, most)
	}
	b := NewMemory(most+maxBlock, 0).Body(most)
	return b.Read(context.Background(), r, -1)
}

func brokenForm(err error) error {
	return agent.Errorf(agent.CodeValidation, "the multipart request is invalid or incomplete").Because(err)
}
