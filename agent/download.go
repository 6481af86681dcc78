package agent

import (
	"path"
	"strings"
	"unicode/utf8"
)

// DownloadStatus is the state of a download.
type DownloadStatus string

// The states of a download.
const (
	DownloadDone   DownloadStatus = "done"
	DownloadFailed DownloadStatus = "failed"
)

// Download is a file downloaded by a page of a browser session.
type Download struct {
	ID        string         `json:"id" example:"download-06f1q2s3t4v5a6b7c8d9"`
	SessionID string         `json:"session_id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Name      string         `json:"name" example:"invoice.pdf"`
	URL       string         `json:"url" example:"https://example.com/invoice.pdf"`
	Size      int64          `json:"size" doc:"Bytes." example:"48213"`
	Status    DownloadStatus `json:"status" enum:"done,failed" example:"done"`
	Error     string         `json:"error,omitempty" doc:"Why it failed."`
	CreatedAt Time           `json:"created_at" format:"date-time"`
}

// Limits of an agent's stored downloads. The oldest are deleted first.
const (
	MaxDownloads     = 200
	MaxDownloadBytes = 512 << 20
)

// FileName converts a suggested name to a plain file name.
func FileName(suggested string) string {
	name := path.Base(strings.ReplaceAll(strings.ToValidUTF8(suggested, "_"), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`:*?"<>|/`, r) {
			return '_'
		}
		return r
	}, name)
	if cut := len(name) - 200; cut > 0 { // cut at the front to keep the extension
		for !utf8.RuneStart(name[cut]) {
			cut++
		}
		name = name[cut:]
	}
	if name = strings.TrimLeft(name, "."); name == "" {
		return "download"
	}
	return name
}
