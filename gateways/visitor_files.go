package gateways

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Limits on visitors' uploads that run at the same time.
const (
	maxUploads        = 32
	maxWidgetUploads  = 8
	maxVisitorUploads = 2
)

// uploadTime is how long a visitor's upload may take.
const uploadTime = 5 * time.Minute

// Upload is a visitor's message with files that is being received.
type Upload struct {
	widget  *Widget
	visitor Visitor
	ctx     context.Context
	files   []*store.Upload
	room    int64 // bytes
	end     func()
}

// BeginUpload begins to receive files of a visitor. The caller closes it.
func (w *Widget) BeginUpload(ctx context.Context, v Visitor) (*Upload, error) {
	if !w.TakesFiles() {
		return nil, agent.Errorf(agent.CodeForbidden, "this chat takes no files")
	}
	room, err := w.db.VisitorFileRoom(ctx, w.ID, v.ID)
	if err != nil {
		return nil, err
	}
	if !w.gateways.visitors.beginUpload(w.visit(v)) {
		return nil, agent.Errorf(agent.CodeRateLimited, "too many files are being sent at the moment").With("retry_after", 5)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	return &Upload{widget: w, visitor: v, ctx: ctx, room: room, end: func() {
		cancel()
		w.gateways.visitors.endUpload(w.visit(v))
	}}, nil
}

// Close ends the upload and discards files that became part of no message.
func (u *Upload) Close() {
	for _, f := range u.files {
		f.Discard()
	}
	u.end()
}

// MaxBytes returns the bytes that all files of a message may have.
func (w *Widget) MaxBytes() int64 { return int64(w.MaxFiles) * int64(w.MaxFileSize) << 20 }

// Receive receives a file with the name that the visitor's browser gave it. What
// its bytes show decides its type.
func (u *Upload) Receive(name string, r io.Reader) error {
	if len(u.files) >= u.widget.MaxFiles {
		return agent.Invalid("file", "is one too many in a message").With("limit", u.widget.MaxFiles)
	}
	name = agent.FileName(name)
	body := bufio.NewReaderSize(&boundedReader{u.ctx, r}, fileSniffSize)
	head, err := body.Peek(fileSniffSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(head) == 0 {
		return agent.Invalid("file", "is empty")
	}
	media := mediaOf(head, agent.FileMedia(name))
	if err := u.widget.CheckFile(name, head, media); err != nil {
		return err
	}
	limit := int64(u.widget.MaxFileSize) << 20
	file, err := u.widget.db.ReceiveFile(u.ctx, name, media, body, limit)
	if errors.Is(err, store.ErrTooLarge) {
		return agent.Errorf(agent.CodeFileTooLarge, "a file may have at most %d MB", u.widget.MaxFileSize).With("field", "file").With("limit_bytes", limit)
	} else if err != nil {
		return err
	}
	u.files = append(u.files, file)
	if u.room -= file.Size; u.room < 0 {
		return store.TooManyFiles()
	}
	return nil
}

// Finish stores the message with the files that were received.
func (u *Upload) Finish(ctx context.Context, m agent.VisitorMessage) (isNew bool, err error) {
	return u.widget.Receive(ctx, u.visitor, m, u.files...)
}

// boundedReader reads until its context ends.
type boundedReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, unless the context has ended.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, agent.Errorf(agent.CodeValidation, "sending the files took too long")
	}
	return b.r.Read(p)
}

// beginUpload reports whether a visitor may send files now; endUpload follows.
func (vs *visitors) beginUpload(key visitKey) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	widget := key
	widget.thread = ""
	if vs.uploads[visitKey{}] >= maxUploads || vs.uploads[widget] >= maxWidgetUploads || vs.uploads[key] >= maxVisitorUploads {
		return false
	}
	for _, k := range []visitKey{{}, widget, key} {
		vs.uploads[k]++
	}
	return true
}

func (vs *visitors) endUpload(key visitKey) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	widget := key
	widget.thread = ""
	for _, k := range []visitKey{{}, widget, key} {
		if vs.uploads[k]--; vs.uploads[k] == 0 {
			delete(vs.uploads, k)
		}
	}
}

// File returns a file of a message that a visitor sees.
func (w *Widget) File(ctx context.Context, v Visitor, messageID int64, n int) (store.File, error) {
	return w.db.VisitorFile(ctx, w.ID, v.ID, messageID, n)
}
