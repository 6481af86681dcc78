package gateways

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Limits on concurrent uploads of visitors.
const (
	maxUploads        = 32
	maxWidgetUploads  = 8
	maxNetworkUploads = 4
	maxVisitorUploads = 2
)

// uploadTime is how long a visitor's upload may take.
const uploadTime = 5 * time.Minute

// Files receives the files of a message.
type Files struct {
	db    *store.DB
	max   int
	limit int64 // bytes of each
	files []*store.Upload
}

// NewFiles returns a Files for an agent: at most max files of at most limit bytes each.
func NewFiles(db *store.DB, max int, limit int64) *Files {
	return &Files{db: db, max: max, limit: limit}
}

// Receive receives a file with the name that the client gave it. Its type is detected
// from its first bytes. check, unless nil, is called with the name, the first bytes and
// the type.
func (f *Files) Receive(
	ctx context.Context,
	name string,
	reader io.Reader,
	check func(name string, head []byte, media string) error,
) error {
	if len(f.files) >= f.max {
		return agent.Invalid("file", "is one too many in a message").With("limit", f.max)
	}
	name = agent.FileName(name)
	body := bufio.NewReaderSize(reader, fileSniffSize)
	head, err := body.Peek(fileSniffSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(head) == 0 {
		return agent.Invalid("file", "is empty")
	}
	media := mediaOf(head, agent.FileMedia(name))
	if check != nil {
		if err := check(name, head, media); err != nil {
			return err
		}
	}
	file, err := f.db.ReceiveFile(ctx, name, media, body, f.limit)
	if errors.Is(err, store.ErrTooLarge) {
		return agent.Errorf(agent.CodeFileTooLarge, "a file may have at most %d MB", f.limit>>20).
			With("field", "file").
			With("limit_bytes", f.limit)
	} else if err != nil {
		return err
	}
	f.files = append(f.files, file)
	return nil
}

// Stored returns the files that were received.
func (f *Files) Stored() []*store.Upload { return f.files }

// Discard deletes the files that did not become part of a message.
func (f *Files) Discard() {
	for _, file := range f.files {
		file.Discard()
	}
}

// Upload is a visitor's message with files that is being received.
type Upload struct {
	widget    *Widget
	visitor   Visitor
	ctx       context.Context
	files     *Files
	remaining int64 // bytes that the visitor may still send
	counted   int64 // bytes of the files, as a part of the network's share
	kept      bool  // the files became part of a message
	end       func()
}

// BeginUpload begins to receive files from a visitor. The caller must close the Upload.
func (w *Widget) BeginUpload(ctx context.Context, visitor Visitor) (*Upload, error) {
	if !w.TakesFiles() {
		return nil, agent.Errorf(agent.CodeForbidden, "this chat does not accept files")
	}
	room, err := w.db.VisitorFileRoom(ctx, w.ID, visitor.ID)
	if err != nil {
		return nil, err
	}
	if !w.gateways.visitors.beginUpload(w.visit(visitor), visitor.Network) {
		return nil, agent.Errorf(
			agent.CodeRateLimited,
			"too many files are being sent at the moment",
		).With("retry_after", 5)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTime)
	return &Upload{
		widget:    w,
		visitor:   visitor,
		ctx:       ctx,
		files:     NewFiles(w.db, w.MaxFiles, int64(w.MaxFileSize)<<20),
		remaining: room,
		end: func() {
			cancel()
			w.gateways.visitors.endUpload(w.visit(visitor), visitor.Network)
		},
	}, nil
}

// Close ends the upload and discards the files that did not become part of a message.
func (u *Upload) Close() {
	u.files.Discard()
	if !u.kept {
		u.widget.gateways.visitors.refund(u.widget.sender(&u.visitor), sent{bytes: u.counted})
	}
	u.end()
}

// MaxBytes returns the maximum size of all files of a message together.
func (w *Widget) MaxBytes() int64 {
	return int64(w.MaxFiles) * int64(w.MaxFileSize) << 20
}

// Receive receives a file.
func (u *Upload) Receive(name string, reader io.Reader) error {
	if err := u.files.Receive(
		u.ctx,
		name,
		&boundedReader{u.ctx, reader},
		u.widget.CheckFile,
	); err != nil {
		return err
	}
	size := u.files.files[len(u.files.files)-1].Size
	if u.remaining -= size; u.remaining < 0 {
		return store.TooManyFiles()
	}
	if err := u.widget.takeBytes(&u.visitor, size); err != nil {
		return err
	}
	u.counted += size
	return nil
}

// Finish stores the message with the files that were received.
func (u *Upload) Finish(ctx context.Context, m agent.VisitorMessage) (isNew bool, err error) {
	isNew, err = u.widget.Receive(ctx, u.visitor, m, u.files.files...)
	u.kept = isNew
	return isNew, err
}

// boundedReader is a reader that fails once its context has ended.
type boundedReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context has ended.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, agent.Errorf(agent.CodeValidation, "sending the files took too long")
	}
	return b.r.Read(p)
}

// uploadLimits returns the limits on running uploads that apply to a visitor: of the server,
// of the widget, of the network on all widgets, and of the visitor.
func uploadLimits(key visitKey, network netip.Prefix) map[visitKey]int {
	limits := map[visitKey]int{
		{}:                           maxUploads,
		{key.agent, key.gateway, ""}: maxWidgetUploads,
		key:                          maxVisitorUploads,
	}
	if network.IsValid() {
		limits[visitKey{thread: network.String()}] = maxNetworkUploads
	}
	return limits
}

// beginUpload reports whether a visitor may send files now. If so, the caller must call
// endUpload.
func (vs *visitors) beginUpload(key visitKey, network netip.Prefix) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	limits := uploadLimits(key, network)
	for k, limit := range limits {
		if vs.uploads[k] >= limit {
			return false
		}
	}
	for k := range limits {
		vs.uploads[k]++
	}
	return true
}

func (vs *visitors) endUpload(key visitKey, network netip.Prefix) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for k := range uploadLimits(key, network) {
		if vs.uploads[k]--; vs.uploads[k] == 0 {
			delete(vs.uploads, k)
		}
	}
}

// File returns a file of a message that the visitor can see.
func (w *Widget) File(ctx context.Context, v Visitor, messageID int64, n int) (store.File, error) {
	return w.db.VisitorFile(ctx, w.ID, v.ID, messageID, n)
}
