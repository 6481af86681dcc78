package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

// Bounds of a batch of uploads.
const (
	maxBatch      = 50 // files
	maxBatchSizes = 4  // times the upload limit, of all files together
)

// batchForm describes the upload of several documents.
var batchForm = rest.Form{File: "files", Most: maxBatch, Fields: map[string]string{
	"chunk_size": sourceForm.Fields["chunk_size"],
	"overlap":    sourceForm.Fields["overlap"],
	"method":     sourceForm.Fields["method"],
	"config":     sourceForm.Fields["config"],
}}

// batchItem is what became of one file of a batch: a source or an error.
type batchItem struct {
	Name   string             `json:"name" doc:"The file's name." example:"handbook.pdf"`
	Source *agent.Source      `json:"source,omitempty" doc:"Absent with an error."`
	Error  *rest.ErrorContent `json:"error,omitempty" doc:"Why the file became no source."`
}

type batchOut struct {
	Results []batchItem `json:"results" doc:"In the order of the files."`
}

// batchFile is a file of a batch that was received, or why it was not.
type batchFile struct {
	name   string
	upload *store.Upload
	failed error
}

// createSources makes a source of each file of a batch. A file that cannot be
// one does not keep the others out; a request that is off as a whole makes none.
func (s *Server) createSources(c *rest.Call) error {
	fields := map[string]string{"chunk_size": "", "overlap": "", "method": "", "config": ""}
	files, err := s.receiveBatch(c, fields)
	defer func() {
		for _, f := range files {
			if f.upload != nil {
				f.upload.Discard()
			}
		}
	}()
	if err != nil {
		return err
	}
	chunking, err := readChunking(fields)
	if err != nil {
		return err
	}
	out := batchOut{make([]batchItem, len(files))}
	for i, f := range files {
		source, err := agent.Source{}, f.failed
		if err == nil {
			source, err = c.DB.CreateFileSource(c, f.upload.Name, chunking, f.upload)
		}
		out.Results[i] = batchItem{Name: f.name, Source: &source}
		var refused *agent.Error
		switch {
		case errors.As(err, &refused):
			body := rest.BodyOf(refused)
			out.Results[i] = batchItem{Name: f.name, Error: &body.Error}
		case err != nil:
			return err
		}
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, out)
}

// receiveBatch stores the files of a batch and reads the form's text fields.
// With an error the files that came before it are returned too.
func (s *Server) receiveBatch(c *rest.Call, fields map[string]string) (files []batchFile, err error) {
	part, err := rest.FilePart(c.HTTP, batchForm.File, fields)
	for more := true; more && err == nil; more, err = part.NextFile(batchForm.File, fields) {
		if len(files) == maxBatch {
			return files, agent.Invalid(batchForm.File, fmt.Sprintf("may be at most %d", maxBatch))
		}
		f := batchFile{name: cleanFileName(part.FileName())}
		f.upload, f.failed = s.receive(c, part)
		files = append(files, f)
		var refused *agent.Error
		if f.failed != nil && !errors.As(f.failed, &refused) {
			return files, f.failed
		}
		most := maxBatchSizes * s.options.MaxUpload
		if _, err := io.CopyN(io.Discard, part, most-part.Size+1); err != nil && err != io.EOF { // the rest of a refused file
			return files, err
		}
		if part.Size > most {
			return files, agent.Errorf(agent.CodeFileTooLarge, "the files of a batch may together have at most %d MB", most>>20).
				With("limit_bytes", most).With("field", batchForm.File)
		}
	}
	return files, err
}
