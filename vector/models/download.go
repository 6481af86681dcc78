package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"satchel/agent/egress"
)

// Limits of a download.
const (
	stallTime = time.Minute // without a byte
	attempts  = 4           // for one file
)

// download fetches the files of one model into a folder.
type download struct {
	folder   string
	address  string // of the files; ends with a slash
	pin      pinnedModel
	client   *egress.Client
	progress func(file string, done, total int64)
}

// errNoFile means that the server does not have a file.
var errNoFile = errors.New("the server does not have it")

// file downloads a file unless it exists already. It continues an earlier attempt, if any.
func (d *download) file(ctx context.Context, name string) error {
	target := filepath.Join(d.folder, filepath.FromSlash(name))
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	part := target + ".part"
	var err error
	for range attempts {
		if err = d.attempt(ctx, name, part); err == nil || !shouldRetry(ctx, err) {
			break
		}
	}
	if err == nil {
		err = d.check(name, part)
	}
	if err != nil {
		return fmt.Errorf("download of %s: %w", name, err)
	}
	return os.Rename(part, target)
}

// shouldRetry reports whether another attempt may help.
func shouldRetry(ctx context.Context, err error) bool {
	var failed *os.PathError // of this machine's disk
	return ctx.Err() == nil &&
		!errors.Is(err, errNoFile) &&
		!errors.As(err, &failed) &&
		!egress.IsRefused(err) &&
		!egress.IsPermanent(err) &&
		!egress.IsTLS(err)
}

// check compares the hash of a whole file with the pinned one.
func (d *download) check(name, part string) error {
	want := d.pin.sums[name]
	if want == "" {
		return nil
	}
	_, got, err := hashFile(part)
	if err != nil || got == want {
		return err
	}
	return errors.Join(fmt.Errorf("its SHA-256 is %s, not %s: it was deleted", got, want), os.Remove(part))
}

// attempt appends to the existing part of a file, or starts again if the server does
// not continue.
func (d *download) attempt(ctx context.Context, name, part string) error {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	done, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := d.request(ctx, name, done)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	rest := "bytes " + strconv.FormatInt(done, 10) + "-"
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return errors.Join(errNoFile, os.Remove(part))
	case resp.StatusCode == http.StatusPartialContent && strings.HasPrefix(resp.Header.Get("Content-Range"), rest):
	case resp.StatusCode == http.StatusOK && done == 0:
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(errors.New("the server does not continue it"), os.Remove(part))
	default:
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	return d.receive(file, resp, name, done, cancel)
}

func (d *download) request(ctx context.Context, name string, done int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address+name, nil)
	if err != nil {
		return nil, errors.New("the address of the mirror cannot be used")
	}
	req.Header.Set("Accept-Encoding", "identity")
	if done > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", done))
	}
	return d.client.Do(req)
}

// receive writes a body to the file. stop ends a connection that stalls.
func (d *download) receive(
	file *os.File,
	resp *http.Response,
	name string,
	done int64,
	stop func(),
) error {
	limit := int64(maxOther)
	if path.Base(name) == weights {
		limit = maxWeights
	}
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = done + resp.ContentLength
	}
	if total > limit {
		return fmt.Errorf("%w: it has %d bytes, more than %d", errNoFile, total, limit)
	}
	stall := time.AfterFunc(stallTime, stop)
	defer stall.Stop()
	w := &meter{
		file:  file,
		limit: limit - done,
		report: func(n int64) {
			stall.Reset(stallTime)
			if d.progress != nil {
				d.progress(name, done+n, total)
			}
		},
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return err
	}
	return file.Sync()
}

// meter writes to a file up to a limit and reports how much it wrote.
type meter struct {
	file   io.Writer
	n      int64
	limit  int64
	report func(n int64)
}

func (m *meter) Write(p []byte) (int, error) {
	if m.n+int64(len(p)) > m.limit {
		return 0, errors.New("the file is too large")
	}
	n, err := m.file.Write(p)
	m.n += int64(n)
	m.report(m.n)
	return n, err
}
