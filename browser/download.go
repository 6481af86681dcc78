package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/store"
)

// Limits of downloads.
const (
	DefaultMaxDownload = 25 << 20         // bytes per download
	maxDownloading     = 5                // per session at the same time
	downloadTimeout    = 10 * time.Minute // per download
	maxUnclaimed       = 50               // downloads per session without a waiting caller
	sizeCheckEvery     = 500 * time.Millisecond
)

// onDownload is Playwright's handler for downloads. It must not call
// Playwright.
func (session *Session) onDownload(download playwright.Download) {
	session.mu.Lock()
	session.downloading++
	session.lastDownload = time.Now()
	session.changedLocked()
	tooMany := session.downloading > maxDownloading
	session.mu.Unlock()
	ended := func() {
		session.mu.Lock()
		defer session.mu.Unlock()
		session.downloading--
	}
	put := session.inbox.put(func(context.Context) {
		spawned := session.browser.spawn(func() {
			defer ended()
			session.storeDownload(download, tooMany)
		})
		if !spawned {
			ended()
		}
	})
	if !put {
		ended()
	}
}

// storeDownload stores a download in the agent's file, or records why it
// failed.
func (session *Session) storeDownload(download playwright.Download, tooMany bool) {
	ctx, cancel := context.WithTimeout(session.life, downloadTimeout)
	defer cancel()
	row := agent.Download{
		SessionID: session.id,
		Name:      agent.FileName(download.SuggestedFilename()),
		URL:       agent.Clip(download.URL(), 2000),
		Status:    agent.DownloadDone,
	}
	var err error
	var file *store.Upload
	switch {
	case session.chromium.relay != nil:
		err = errRemote
	case tooMany:
		err = errTooMany
	default:
		file, err = session.receive(ctx, download, row.Name)
	}
	if err != nil {
		row.Status, row.Error = agent.DownloadFailed, downloadProblem(err)
		dropping, done := context.WithTimeout(context.Background(), closeTimeout)
		defer done()
		_, _ = Within(dropping, func() (any, error) {
			return nil, download.Cancel()
		}) // it may have ended
	}
	storing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer done()
	if row, err = session.db.CreateDownload(storing, row, file); err != nil {
		if file != nil {
			file.Discard()
		}
		session.browser.log.Warn("store download", "session", session.id, "error", err)
		return
	}
	session.downloaded(row)
	session.console.add(
		session.pageID(download.Page()),
		"info",
		"download: "+row.Name+" "+row.Error,
	)
	// Chromium's copy is deleted with the session at the latest
	_, _ = Within(storing, func() (any, error) {
		return nil, download.Delete()
	})
}

// downloaded notes the end of a download for the action that waits for it.
func (session *Session) downloaded(d agent.Download) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.downloads = append(session.downloads, d); len(session.downloads) > maxUnclaimed {
		session.downloads = session.downloads[1:]
	}
	session.changedLocked()
}

// claimDownload removes and returns the first ended download that no action has waited
// for.
func (session *Session) claimDownload() (d agent.Download, ok bool) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if len(session.downloads) == 0 {
		return d, false
	}
	d, session.downloads = session.downloads[0], session.downloads[1:]
	return d, true
}

// waitForDownload waits until a download has ended.
func waitForDownload(ctx context.Context, st *step) (map[string]any, error) {
	changed, end := st.session.Changes()
	defer end()
	for {
		if d, ok := st.session.claimDownload(); ok {
			if d.Status == agent.DownloadFailed {
				return nil, agent.Errorf(
					agent.CodeBrowser,
					"the download of %s failed: %s",
					agent.Clip(d.Name, 200),
					d.Error,
				).With("action", st.Action.Action)
			}
			return map[string]any{"download": d}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var (
	errTooMany  = errors.New("too many downloads at a time")
	errTooLarge = errors.New("too large")
	errRemote   = errors.New("the browser is on another machine")
)

// downloadProblem returns the reason for a failed download, for the client.
func downloadProblem(err error) string {
	switch {
	case errors.Is(err, errRemote):
		return "a remote browser does not hand over its downloads"
	case errors.Is(err, errTooMany):
		return fmt.Sprintf("more than %d downloads at a time", maxDownloading)
	case errors.Is(err, errTooLarge), errors.Is(err, store.ErrTooLarge):
		return "the file is larger than the limit"
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "the session ended"
	}
	return "the file could not be loaded"
}

// receive waits for a download and reads it into the agent's file.
func (session *Session) receive(ctx context.Context, download playwright.Download, name string) (*store.Upload, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	measured := make(chan struct{})
	go func() {
		defer close(measured)
		session.limitSize(ctx, cancel)
	}()
	path, err := Within(ctx, download.Path)
	cancel(nil)
	<-measured
	if err != nil {
		return nil, err
	}
	// Only files that Chromium wrote to its own folder are read.
	in, err := os.Open(filepath.Join(session.chromium.folder.in("downloads"), filepath.Base(path)))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return session.db.ReceiveFile(
		context.WithoutCancel(ctx),
		name,
		"application/octet-stream",
		in,
		session.browser.options.MaxDownload,
	)
}

// limitSize cancels a download when a file of this Chromium has become too
// large. It is unknown whose file it is while it grows, so other downloads in
// progress fail with it.
func (session *Session) limitSize(ctx context.Context, cut context.CancelCauseFunc) {
	ticker := time.NewTicker(sizeCheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		entries, err := os.ReadDir(session.chromium.folder.in("downloads"))
		if err != nil {
			return
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Size() > session.browser.options.MaxDownload {
				cut(errTooLarge)
				return
			}
		}
	}
}
