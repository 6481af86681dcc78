package vector

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/chunk"
	"satchel/vector/document"
)

// Codes of a source that could not be indexed, in addition to those of
// document.
const (
	// CodeNoFile means that a source has no file to read.
	CodeNoFile agent.Code = "NO_FILE"
	// CodeCutOff means that reading a file was interrupted so often that the
	// file itself may be crashing the program.
	CodeCutOff agent.Code = "READING_CUT_OFF"
)

// maxAttempts is how often reading a file is attempted.
const maxAttempts = 3

// attempt runs what may crash the program, at most a few times.
func (ix *Index) attempt(
	ctx context.Context,
	db *store.DB,
	work *store.Work,
	what string,
	do func() error,
) error {
	if work.Attempts >= maxAttempts {
		return ix.failSource(ctx, db, work, agent.Errorf(
			CodeCutOff,
			"%s was interrupted %d times, possibly because of the source itself; reindex it to try again",
			what, maxAttempts,
		), "")
	}
	if err := db.BeginReading(ctx, work.ID); err != nil {
		return err
	}
	defer func() {
		if ctx.Err() == nil {
			return
		}
		if err := db.ForgetReading(context.WithoutCancel(ctx), work.ID); err != nil {
			ix.log.Warn("reset interrupted reading of source", "agent", db.ID(), "source", work.ID, "error", err)
		}
	}()
	ix.step("begin")
	return do()
}

// read reads the file of a source, splits it and replaces the stored chunks. A
// killed program reads it again from the start.
func (ix *Index) read(ctx context.Context, db *store.DB, w *store.Work, m model) error {
	_, err := ix.readFile(ctx, db, w, m)
	return err
}

// readFile is read; late means that it took too long.
func (ix *Index) readFile(ctx context.Context, db *store.DB, work *store.Work, model model) (late bool, err error) {
	err = ix.attempt(ctx, db, work, "reading this file", func() error {
		file, err := db.SourceFile(ctx, work.ID)
		if agent.ErrorCode(err) == agent.CodeNotFound {
			return ix.failSource(ctx, db, work, agent.Errorf(CodeNoFile, "this source has no file"), "")
		} else if err != nil {
			return err
		}
		var data bytes.Buffer
		data.Grow(int(file.Size))
		if err := file.WriteTo(ctx, &data); err != nil {
			if _, problem := db.SourceFile(ctx, work.ID); problem != nil {
				return problem // deleted between two parts
			}
			return err
		}
		reading, cancel := db.WhileUnfinished(ctx, work.ID)
		defer cancel()
		chunks, failure := ix.splitFile(reading, work, file, data.Bytes())
		if reading.Err() != nil {
			return context.Cause(reading)
		}
		late = agent.ErrorCode(failure) == document.CodeTimeout
		if failure != nil {
			return ix.failSource(ctx, db, work, failure, "this file could not be read")
		}
		return ix.replace(ctx, db, work, model, chunks)
	})
	return late, err
}

// readText reads the text of a file. A child takes no processor from embedding and
// other files: until it is given up, they would have to wait.
func (ix *Index) readText(ctx context.Context, file store.File, data []byte) (*document.Document, error) {
	if !document.InChild(file.Name, file.MediaType, data) {
		if err := ix.acquire(ctx); err != nil {
			return nil, err
		}
		defer ix.release()
	}
	return ix.readDocument(ctx, file.Name, file.MediaType, data, document.Limits{})
}

// splitFile splits a file into chunks. Its errors are about the file, or ctx's.
func (ix *Index) splitFile(
	ctx context.Context,
	w *store.Work,
	file store.File,
	data []byte,
) (chunks []store.NewChunk, err error) {
	defer recoverError(&err)
	doc, err := ix.readText(ctx, file, data)
	if err != nil {
		return nil, err
	}
	if err := ix.acquire(ctx); err != nil {
		return nil, err
	}
	defer ix.release()
	return ix.split(ctx, w, doc)
}

// split splits a document. The caller holds a processor.
func (ix *Index) split(ctx context.Context, work *store.Work, doc *document.Document) ([]store.NewChunk, error) {
	pieces, err := chunk.Split(ctx, doc, chunk.Config{
		Size:    work.Chunking.Size,
		Overlap: work.Chunking.Overlap,
		Method:  work.Chunking.Method,
		Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
			ix.release() // others may compute between two batches
			defer func() { ix.processors <- struct{}{} }()
			return embedAll(ctx, texts, ix.inBackground(ix.embed))
		},
	})
	if err != nil {
		return nil, err
	}
	chunks := make([]store.NewChunk, len(pieces))
	for i, p := range pieces {
		chunks[i] = store.NewChunk{
			Content:    p.Content,
			Section:    section(doc.Title, p.Heading),
			Page:       p.Page,
			PageStarts: p.PageStarts,
			Line:       p.Line,
			LastLine:   p.LastLine,
		}
		for _, heading := range p.LaterHeadings {
			chunks[i].LaterSections = append(chunks[i].LaterSections, section(doc.Title, heading))
		}
	}
	return chunks, nil
}

// section returns the position of a chunk: the document's title and the
// headings above it, unless the title is the first of them.
func section(title, headings string) string {
	switch {
	case title == "" || headings == title || strings.HasPrefix(headings, title+" > "):
		return headings
	case headings == "":
		return title
	}
	return title + " > " + headings
}

// appendBatch is how many chunks are stored between two checks of ctx.
const appendBatch = 100

// replace replaces the chunks of a source.
func (ix *Index) replace(
	ctx context.Context,
	db *store.DB,
	work *store.Work,
	model model,
	chunks []store.NewChunk,
) error {
	if err := db.DropChunks(ctx, work.ID); err != nil {
		return err
	}
	ix.step("drop")
	for from := 0; from < len(chunks); from += appendBatch {
		if err := db.AppendChunks(
			ctx,
			work.ID,
			from,
			chunks[from:min(from+appendBatch, len(chunks))],
		); err != nil {
			return err
		}
		ix.step("append")
	}
	return db.EndChunks(ctx, work.ID, model.name)
}

// recoverError converts a panic to an error, so that a file on which a reader
// panics does not end the program.
func recoverError(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}
