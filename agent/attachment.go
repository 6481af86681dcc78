package agent

import (
	"encoding/json"
	"mime"
	"slices"
	"strings"
)

// AttachmentStatus is the download status of a file that came with a message.
type AttachmentStatus string

// The states of an attachment. One without a status is not downloaded.
const (
	AttachmentPending AttachmentStatus = "pending"
	AttachmentStored  AttachmentStatus = "stored"
	AttachmentFailed  AttachmentStatus = "failed"
	AttachmentRemoved AttachmentStatus = "removed" // to make room for newer ones
)

// Attachment describes a file that came with a message. It is stored in the
// message's metadata.attachments.
type Attachment struct {
	Type     string           `json:"type,omitempty"` // the platform's type, such as voice
	ID       string           `json:"id,omitempty"`   // the platform's id of the file
	Name     string           `json:"name,omitempty"`
	MimeType string           `json:"mime_type,omitempty"`
	Size     int64            `json:"size,omitempty"` // in bytes
	URL      string           `json:"url,omitempty"`
	Status   AttachmentStatus `json:"status,omitempty"`
	Error    string           `json:"error,omitempty"` // why it failed
}

// Limits of the files that come with messages.
const (
	MaxMessageAttachments   = 20        // of a message
	MaxAttachmentBytes      = 20 << 20  // of a file; also Telegram's limit for bots
	MaxAttachments          = 10_000    // of an agent; the oldest are removed first
	MaxStoredAttachmentSize = 512 << 20 // of all of an agent's, in bytes; the oldest are removed first
)

// shownMedia are media types that browsers show or play without executing
// anything in the file.
var shownMedia = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp",
	"audio/mpeg", "audio/ogg", "audio/wav", "audio/aiff", "audio/mp4", "audio/webm", "video/mp4", "video/webm",
	"video/ogg", "application/pdf",
}

// IsShownMedia reports whether a file may be served to browsers under its media
// type. SVG and HTML may not: they can contain scripts.
func IsShownMedia(mediaType string) bool {
	media, _, err := mime.ParseMediaType(mediaType)
	return err == nil && slices.Contains(shownMedia, strings.ToLower(media))
}

// addAttachments adds the attachments of a message to its metadata. Those without a
// status must be downloaded.
func addAttachments(facts map[string]json.RawMessage, files []Attachment) {
	if len(files) == 0 {
		return
	}
	kept := slices.Clone(files[:min(len(files), MaxMessageAttachments)])
	for i := range kept {
		a := &kept[i]
		a.Type, a.ID, a.Name = Clip(plain(a.Type), 50), Clip(plain(a.ID), 500), Clip(plain(a.Name), 500)
		a.MimeType, a.URL = Clip(plain(a.MimeType), 200), plain(a.URL)
		if len(a.URL) > 4000 {
			a.URL = ""
		}
		if a.Status == "" {
			a.Status = AttachmentPending
		}
	}
	facts["attachments"], _ = json.Marshal(kept)
}
