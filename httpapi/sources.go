package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
	"satchel/vector"
	"satchel/vector/document"
)

type listSourcesIn struct {
	rest.ListParams
	Type   []string `query:"type" doc:"file, url, crawl, database or api; may be repeated." example:"file"`
	Status []string `query:"status" doc:"processing, crawling, updating, ready or error; may be repeated." example:"ready"`
}

type sourcesOut struct {
	Sources []agent.Source `json:"sources"`
	Meta    rest.Meta      `json:"meta"`
}

func (s *Server) listSources(call *rest.Call, in *listSourcesIn) (sourcesOut, error) {
	page, err := in.Page("name", "type", "status", "chunks", "created_at", "updated_at")
	if err != nil {
		return sourcesOut{}, err
	}
	for _, t := range in.Type {
		if !slices.Contains([]string{"file", "url", "crawl", "database", "api"}, t) {
			return sourcesOut{}, agent.Invalid("type", "must be file, url, crawl, database or api")
		}
	}
	for _, status := range in.Status {
		if !slices.Contains(agent.SourceStatuses, agent.SourceStatus(status)) {
			return sourcesOut{}, agent.Invalid("status", "must be processing, crawling, updating, ready or error")
		}
	}
	found, total, err := call.DB.Sources(
		call,
		store.SourceFilter{Types: in.Type, Statuses: in.Status},
		page,
	)
	if err != nil {
		return sourcesOut{}, err
	}
	model, err := s.index.Model(call, call.DB)
	for i := range found {
		found[i].Stale = isStale(&found[i], model)
	}
	return sourcesOut{found, rest.MetaOf(page, total)}, err
}

// isStale reports whether a source's vectors are from another model than the agent's
// current one, even while it waits to be embedded again.
func isStale(s *agent.Source, model string) bool {
	settled := s.Status == agent.SourceReady || s.Status == agent.SourceFailed
	waits := s.Status == agent.SourceUpdating && s.EmbeddingModel != ""
	return (settled || waits) && s.Chunks > 0 && s.EmbeddingModel != model
}

// withStale sets the fields of a source that the store does not set.
func (s *Server) withStale(c *rest.Call, source agent.Source, err error) (agent.Source, error) {
	if err != nil {
		return source, err
	}
	model, err := s.index.Model(c, c.DB)
	source.Stale = isStale(&source, model)
	return source, err
}

// sourceForm describes the upload of a document.
var sourceForm = rest.Form{
	File: "file",
	JSON: reflect.TypeFor[sourceBody](),
	Fields: map[string]string{
		"type":       "file",
		"name":       "Display name; the file's name without it.",
		"chunk_size": "Longest chunk, in characters; 1000 without it.",
		"overlap":    "Characters shared by neighbours; 200 without it.",
		"method":     "fixed, sentence, recursive, markdown or semantic; recursive without it.",
		"config":     "The three as one JSON object.",
	},
}

type createSourceIn struct {
	Wait int `query:"wait" doc:"Seconds to wait until the source is ready or failed, at most 300. Default: do not wait." minimum:"0" maximum:"300" example:"30"`
}

func (s *Server) createSource(call *rest.Call) error {
	in, err := rest.Bind[createSourceIn](call)
	if err == nil {
		err = checkWait(in.Wait)
	}
	if err != nil {
		return err
	}
	wait := time.Duration(in.Wait) * time.Second
	if media, _, _ := mime.ParseMediaType(
		call.HTTP.Request().Header.Get(echo.HeaderContentType),
	); media == echo.MIMEApplicationJSON {
		return s.createSourceByJSON(call, wait)
	}
	fields := map[string]string{
		"type":       "",
		"name":       "",
		"chunk_size": "",
		"overlap":    "",
		"method":     "",
		"config":     "",
	}
	part, err := rest.FilePart(call, "file", fields)
	if err != nil {
		return err
	}
	upload, err := s.receive(call, part)
	if err != nil {
		return err
	}
	defer upload.Discard()
	if err := part.Rest(fields); err != nil {
		return err
	}
	if t := fields["type"]; t != "" && t != agent.SourceFile {
		return agent.Invalid("type", "must be file for an upload")
	}
	chunking, err := readChunking(fields)
	if err != nil {
		return err
	}
	name := strings.TrimSpace(fields["name"])
	if name == "" {
		name = upload.Name
	}
	source, err := call.DB.CreateFileSource(call, name, chunking, upload)
	if err != nil {
		return err
	}
	return s.answerSource(call, source, wait)
}

// answerSource responds with a new source once it is ready or failed, the time
// to wait has passed, or the server stops.
func (s *Server) answerSource(c *rest.Call, source agent.Source, wait time.Duration) error {
	c.Body.Release() // it is stored
	if err := extendForWait(c, wait); err != nil {
		return err
	}
	source, err := s.awaitSource(c, source, wait)
	if err == nil {
		err = rest.Ended(c)
	}
	if err != nil {
		return err
	}
	c.HTTP.Response().Header().Set(echo.HeaderLocation, sourceLocation(c, source))
	return rest.WriteJSON(c.HTTP, http.StatusCreated, source)
}

// awaitSource returns a new source once it is ready or failed, the time to wait
// has passed, or the server stops.
func (s *Server) awaitSource(call *rest.Call, source agent.Source, wait time.Duration) (agent.Source, error) {
	if wait <= 0 {
		return source, nil
	}
	ctx, cancel := context.WithTimeout(call, wait)
	defer cancel()
	defer context.AfterFunc(s.streams, cancel)()
	now, err := call.DB.AwaitSource(ctx, source.ID)
	switch {
	case call.Err() != nil:
		return source, call.Err()
	case ctx.Err() == nil:
		return now, err
	case now.ID == "": // the wait ended while it was read
		return source, nil
	}
	return now, nil
}

// sniffBytes is the number of bytes that determine a file's format.
const sniffBytes = 64 << 10

// receive stores an uploaded file of a known format, within the limit.
func (s *Server) receive(call *rest.Call, part *rest.FilePartReader) (*store.Upload, error) {
	name := cleanFileName(part.FileName())
	body := bufio.NewReaderSize(part, sniffBytes)
	head, err := body.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	if len(head) == 0 {
		return nil, agent.Invalid("file", "is empty")
	}
	check := document.Check
	if len(head) == sniffBytes {
		check = document.CheckHead
	}
	format, err := check(name, part.Header.Get(echo.HeaderContentType), head)
	if err != nil {
		return nil, err
	}
	upload, err := call.DB.ReceiveFile(call, name, format.MediaType(), body, s.options.MaxUpload)
	if errors.Is(err, store.ErrTooLarge) {
		return nil, agent.Errorf(agent.CodeFileTooLarge, "a file may have at most %d MB", s.options.MaxUpload>>20).
			With("limit_bytes", s.options.MaxUpload).With("field", "file")
	}
	return upload, err
}

// cleanFileName returns the last part of a client's file name, without
// characters that are invalid in file systems or headers.
func cleanFileName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, name)
	if name = strings.TrimSpace(agent.Clip(name, 200)); name == "" || name == "." || name == ".." || name == "/" {
		return "file"
	}
	return name
}

// readChunking parses chunking options from form fields or from the field
// config; separate fields take precedence.
func readChunking(fields map[string]string) (agent.Chunking, error) {
	chunking := agent.DefaultChunking
	if raw := fields["config"]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &chunking); err != nil {
			field, issue := rest.ExplainJSON("config", err)
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				issue = "must be a JSON object"
			}
			return chunking, agent.Invalid(field, issue)
		}
	}
	for name, dst := range map[string]*int{"chunk_size": &chunking.Size, "overlap": &chunking.Overlap} {
		if fields[name] == "" {
			continue
		}
		n, err := strconv.Atoi(fields[name])
		if err != nil {
			return chunking, agent.Invalid(name, "must be a whole number")
		}
		*dst = n
	}
	if fields["method"] != "" {
		chunking.Method = fields["method"]
	}
	if fields["overlap"] == "" && !strings.Contains(fields["config"], "overlap") && chunking.Overlap >= chunking.Size {
		chunking.Overlap = chunking.Size / 5 // the default would not fit a small chunk
	}
	return chunking, chunking.Validate()
}

type sourceIn struct {
	ID string `path:"sourceId" doc:"Id of the source." example:"source-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getSource(c *rest.Call, in *sourceIn) (agent.Source, error) {
	source, err := c.DB.Source(c, in.ID)
	return s.withStale(c, source, err)
}

func (s *Server) deleteSource(c *rest.Call, in *sourceIn) (Success, error) {
	if err := c.DB.DeleteSource(c, in.ID); err != nil {
		return Success{}, err
	}
	return Success{Success: true}, nil
}

// sourceFile serves the original as a download, never inline.
func (s *Server) sourceFile(c *rest.Call) error {
	in, err := rest.Bind[sourceIn](c)
	if err != nil {
		return err
	}
	file, err := c.DB.SourceFile(c, in.ID)
	if err != nil {
		return err
	}
	return writeFile(c, file)
}

// writeFile serves a stored file as a download.
func writeFile(c *rest.Call, file store.File) error {
	h := c.HTTP.Response().Header()
	h.Set(echo.HeaderContentType, file.MediaType)
	h.Set(echo.HeaderContentLength, fmt.Sprint(file.Size))
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}))
	h.Set(echo.HeaderContentSecurityPolicy, "sandbox; default-src 'none'")
	c.HTTP.Response().WriteHeader(http.StatusOK)
	return file.WriteTo(c, c.HTTP.Response())
}

type listChunksIn struct {
	sourceIn
	Limit  *int   `query:"limit" doc:"Maximum number of records, 1 to 200. Higher values are reduced to 200." minimum:"1" default:"50" example:"50"`
	Offset int    `query:"offset" doc:"Number of records to skip." minimum:"0" default:"0" example:"0"`
	Cursor string `query:"cursor" doc:"cursor in the meta of the previous page, instead of offset."`
}

type chunksOut struct {
	Chunks []agent.Chunk `json:"chunks"`
	Meta   rest.Meta     `json:"meta"`
}

func (s *Server) listChunks(c *rest.Call, in *listChunksIn) (chunksOut, error) {
	page, err := rest.ListParams{
		Limit:  in.Limit,
		Offset: in.Offset,
		Cursor: in.Cursor,
	}.Page()
	if err != nil {
		return chunksOut{}, err
	}
	chunks, total, err := c.DB.Chunks(c, in.ID, page)
	return chunksOut{chunks, rest.MetaOf(page, total)}, err
}

type sourceTextIn struct {
	sourceIn
	Chunk  string `query:"chunk" doc:"Id of a chunk: return the text around it, including all of it."`
	Offset int    `query:"offset" doc:"Without chunk: start offset in UTF-16 code units. The next part starts at from plus the length of text." minimum:"0" default:"0" example:"0"`
	Bytes  *int   `query:"bytes" doc:"Maximum length of the text, which consists of whole chunks, at least one." minimum:"1" maximum:"1048576" default:"65536" example:"65536"`
}

func (s *Server) sourceText(c *rest.Call, in *sourceTextIn) (vector.SourceText, error) {
	window := vector.Window{
		ChunkID: in.Chunk,
		Offset:  in.Offset,
		Bytes:   valueOr(in.Bytes, vector.DefaultWindow),
	}
	if window.Bytes < 1 {
		return vector.SourceText{}, agent.Invalid("bytes", "must be at least 1")
	}
	return vector.Text(c, c.DB, in.ID, window)
}

// restarted is the response to restarting work on a source.
type restarted struct {
	ID      string             `json:"id" example:"source-06f1q2s3t4v5a6b7c8d9"`
	Type    string             `json:"type" example:"file"`
	Status  agent.SourceStatus `json:"status" example:"processing"`
	Message string             `json:"message"`
}

func (s *Server) reindexSource(c *rest.Call, in *sourceIn) (restarted, error) {
	source, err := c.DB.Source(c, in.ID)
	if err != nil {
		return restarted{}, err
	}
	message := "the source is read and embedded again"
	if agent.Crawled(source.Type) {
		message = "all pages are visited again; those that are new or changed are indexed"
	}
	return s.restart(c, in.ID, agent.ReindexStatus(source.Type), message)
}

func (s *Server) refreshSource(c *rest.Call, in *sourceIn) (restarted, error) {
	return s.restart(c, in.ID, agent.SourceUpdating, "the source is processed again")
}

func (s *Server) stopSource(c *rest.Call, in *sourceIn) (agent.Source, error) {
	source, err := c.DB.StopSource(c, in.ID)
	if err == nil && agent.Crawled(source.Type) {
		s.options.Crawler.Forget(c.DB, in.ID)
	}
	return s.withStale(c, source, err)
}

func (s *Server) restart(c *rest.Call, id string, status agent.SourceStatus, message string) (restarted, error) {
	source, err := c.DB.RestartSource(c, id, status)
	if err != nil {
		return restarted{}, err
	}
	return restarted{
		ID:      source.ID,
		Type:    source.Type,
		Status:  source.Status,
		Message: message,
	}, nil
}
