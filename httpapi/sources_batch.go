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

// Limits of a batch of uploads.
const (
	maxBatch      = 50 // files
	maxBatchSizes = 4  // times the upload limit, for all files together
)

// batchForm describes the upload of several documents.
var batchForm = rest.Form{
	File:     "files",
	MaxFiles: maxBatch,
	Fields: map[string]string{
		"chunk_size": sourceForm.Fields["chunk_size"],
		"overlap":    sourceForm.Fields["overlap"],
		"method":     sourceForm.Fields["method"],
		"config":     sourceForm.Fields["config"],
	},
}

// batchItem is the result of one file of a batch: a source or an error.
type batchItem struct {
	Name   string             `json:"name" doc:"The file's name." example:"handbook.pdf"`
	Source *agent.Source      `json:"source,omitempty" doc:"Absent if there is an error."`
	Error  *rest.ErrorContent `json:"error,omitempty" doc:"Why no source was created from the file."`
}

type batchOut struct {
	Results []batchItem `json:"results" doc:"In the order of the files."`
}

// batchFile is a received file of a batch, or its error.
type batchFile struct {
	name   string
	upload *store.Upload
	failed error
}

// createSources creates a source from each file of a batch. An invalid file
// does not affect the others; an invalid request creates none.
func (s *Server) createSources(call *rest.Call) error {
	fields := map[string]string{
		"chunk_size": "",
		"overlap":    "",
		"method":     "",
		"config":     "",
	}
	files, err := s.receiveBatch(call, fields)
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
			source, err = call.DB.CreateFileSource(call, f.upload.Name, chunking, f.upload)
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
	return rest.WriteJSON(call.HTTP, http.StatusOK, out)
}

// receiveBatch stores the files of a batch and reads the form's text fields.
// With an error it also returns the files before it.
func (s *Server) receiveBatch(call *rest.Call, fields map[string]string) (files []batchFile, err error) {
	part, err := rest.FilePart(call, batchForm.File, fields)
	for more := true; more && err == nil; more, err = part.NextFile(batchForm.File, fields) {
		if len(files) == maxBatch {
			return files, agent.Invalid(batchForm.File, fmt.Sprintf("may be at most %d", maxBatch))
		}
		file := batchFile{name: cleanFileName(part.FileName())}
		file.upload, file.failed = s.receive(call, part)
		files = append(files, file)
		var refused *agent.Error
		if file.failed != nil && !errors.As(file.failed, &refused) {
			return files, file.failed
		}
		most := maxBatchSizes * s.options.MaxUpload
		// the rest of a rejected file
		if _, err := io.CopyN(
			io.Discard,
			part,
			most-part.Size+1,
		); err != nil && !errors.Is(err, io.EOF) {
			return files, err
		}
		if part.Size > most {
			return files, agent.Errorf(
				agent.CodeFileTooLarge,
				"the files of a batch may together have at most %d MB",
				most>>20,
			).With("limit_bytes", most).With("field", batchForm.File)
		}
	}
	return files, err
}
