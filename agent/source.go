package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SourceStatus is the state of a source's knowledge.
type SourceStatus string

// The statuses of a source: processing an upload, crawling a website, updating
// on refresh, then ready or error.
const (
	SourceProcessing SourceStatus = "processing"
	SourceCrawling   SourceStatus = "crawling"
	SourceUpdating   SourceStatus = "updating"
	SourceReady      SourceStatus = "ready"
	SourceFailed     SourceStatus = "error"
)

// SourceStatuses lists every status of a source.
var SourceStatuses = []SourceStatus{SourceProcessing, SourceCrawling, SourceUpdating, SourceReady, SourceFailed}

// SourceStopped is the code of the error of a source that someone stopped.
const SourceStopped = "STOPPED"

// The types of source that are not read from a website.
const (
	SourceFile     = "file"     // an uploaded file
	SourceDatabase = "database" // the rows of a query over the agent's own tables
	SourceAPI      = "api"      // the items that a JSON API returns
)

// Source is a piece of knowledge: a document split into chunks that can be
// searched by meaning.
type Source struct {
	ID             string          `json:"id" example:"source-06f1q2s3t4v5a6b7c8d9"`
	Type           string          `json:"type" enum:"file,url,crawl,database,api" example:"file"`
	Name           string          `json:"name" example:"Handbook"`
	Status         SourceStatus    `json:"status" enum:"processing,crawling,updating,ready,error" example:"ready"`
	Chunks         int             `json:"chunks" doc:"Number of chunks." example:"12"`
	FilePath       string          `json:"file_path" doc:"The file's logical path inside the agent's file." example:"sources/source-06f1q2s3t4v5a6b7c8d9/handbook.md"`
	Config         json.RawMessage `json:"config" doc:"How it is read and split, and the outcome of the last read."`
	EmbeddingModel string          `json:"embedding_model" doc:"The model that made its vectors." example:"use-lite-en-1"`
	Stale          bool            `json:"stale,omitempty" doc:"Its vectors come from a different model than the agent's current one: until it is indexed again, it is found by words only."`
	Error          *SourceError    `json:"error,omitempty" doc:"Why it could not be read, why reading is delayed, or, with the code STOPPED, who stopped it."`
	Progress       *Progress       `json:"progress,omitempty"`
	CreatedAt      Time            `json:"created_at" format:"date-time"`
	UpdatedAt      Time            `json:"updated_at" format:"date-time"`
}

// PendingSource is a source whose text is still being read.
type PendingSource struct {
	ID     string       `json:"id" example:"source-06f1q2s3t4v5a6b7c8d9"`
	Name   string       `json:"name" example:"Handbook"`
	Status SourceStatus `json:"status" enum:"processing,crawling,updating" example:"processing"`
}

// SourceError is the reason why a source could not be read.
type SourceError struct {
	Code    string `json:"code" example:"BROKEN_FILE"`
	Message string `json:"message"`
}

// Progress is the progress of the work on a source.
type Progress struct {
	Done   int `json:"done"`
	Queued int `json:"queued"`
	Total  int `json:"total"`
}

// Chunking is how text is split. Sizes are in characters.
type Chunking struct {
	Size    int    `json:"chunk_size" doc:"Maximum size of a chunk, in characters." example:"1000"`
	Overlap int    `json:"overlap" doc:"Characters shared by adjacent chunks; less than chunk_size." example:"200"`
	Method  string `json:"method" enum:"fixed,sentence,recursive,markdown,semantic" example:"recursive"`
}

// DefaultChunking is used unless a client sets its own.
var DefaultChunking = Chunking{Size: 1000, Overlap: 200, Method: "recursive"}

// Limits of chunk_size, in characters.
const (
	MinChunkSize = 50
	MaxChunkSize = 20_000
)

// chunkMethods lists the methods of splitting text.
var chunkMethods = []string{"fixed", "sentence", "recursive", "markdown", "semantic"}

// Validate checks the fields that clients set.
func (c *Chunking) Validate() error {
	var is Issues
	is.Check(
		c.Size >= MinChunkSize && c.Size <= MaxChunkSize,
		"chunk_size",
		fmt.Sprintf("must be from %d to %d", MinChunkSize, MaxChunkSize),
	)
	is.Check(c.Overlap >= 0 && c.Overlap < c.Size, "overlap", "must be from 0 to less than chunk_size")
	is.Check(slices.Contains(chunkMethods, c.Method), "method", "must be "+strings.Join(chunkMethods, ", "))
	return is.Err()
}

// CheckSourceName checks a source's display name.
func CheckSourceName(name string) error {
	var is Issues
	is.Check(strings.TrimSpace(name) != "", "name", "is required")
	is.checkText("name", name, 200)
	return is.Err()
}

// Chunk is one searchable part of a source.
type Chunk struct {
	ID       string        `json:"id" example:"chunk-06f1q2s3t4v5a6b7c8d9"`
	Position int           `json:"position" doc:"0 is the first chunk of its source."`
	Content  string        `json:"content"`
	Metadata ChunkMetadata `json:"metadata"`
}

// ChunkMetadata is the position of a chunk in its source.
type ChunkMetadata struct {
	SourceName string `json:"source_name"`
	Page       int    `json:"page" doc:"The page where it starts, or that its best sentence is on. 1 is the first page; 0 if the format has no pages."`
	LastPage   int    `json:"last_page" doc:"The page where it ends, or that its best sentence is on."`
	Section    string `json:"section" doc:"The headings above its start, outermost first, separated by >."`
	URL        string `json:"url"`

	Sections []string `json:"sections" doc:"All sections that it has text of; the first is section."`
	Line     int      `json:"line" doc:"The line of the file where it starts, from 1; 0 if the format has no lines or the file was read by an earlier version." example:"12"`
	LastLine int      `json:"last_line" doc:"The line of the file where it ends." example:"31"`
	Place    string   `json:"place" doc:"Page, sections and lines as a text to show." example:"page 4 · Returns"`

	PageStarts []PageStart `json:"-"` // where each page starts in the content, if there are several
}

// PageStart is where a page starts in a text.
type PageStart struct {
	Page   int `json:"page"`
	Offset int `json:"offset"` // in bytes
}

// SetPages sets Page, LastPage and Place to the pages that parts of the content, from
// one byte to another, are on.
func (m *ChunkMetadata) SetPages(parts ...[2]int) {
	if len(m.PageStarts) == 0 {
		return
	}
	m.Page, m.LastPage = m.PageStarts[len(m.PageStarts)-1].Page, 0
	for _, part := range parts {
		for i, p := range m.PageStarts {
			if p.Offset < part[1] && (i+1 == len(m.PageStarts) || m.PageStarts[i+1].Offset > part[0]) {
				m.Page, m.LastPage = min(m.Page, p.Page), max(m.LastPage, p.Page)
			}
		}
	}
	m.SetPlace()
}

// placeSections is how many sections a place names.
const placeSections = 3

// SetPlace sets Place by the other fields.
func (m *ChunkMetadata) SetPlace() {
	var parts []string
	switch {
	case m.Page > 0 && m.LastPage > m.Page:
		parts = append(parts, fmt.Sprintf("pages %d–%d", m.Page, m.LastPage))
	case m.Page > 0:
		parts = append(parts, fmt.Sprintf("page %d", m.Page))
	}
	if m.Section != "" {
		parts = append(parts, m.Section)
	}
	for i, further := range m.Sections[min(1, len(m.Sections)):] {
		if i+1 == placeSections {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, further[strings.LastIndex(further, "> ")+1:])
	}
	switch {
	case m.Line > 0 && m.LastLine > m.Line:
		parts = append(parts, fmt.Sprintf("lines %d–%d", m.Line, m.LastLine))
	case m.Line > 0:
		parts = append(parts, fmt.Sprintf("line %d", m.Line))
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	m.Place = strings.Join(parts, " · ")
}
