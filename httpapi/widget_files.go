package httpapi

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
)

// Limits of visitors' files.
const (
	maxVisitorForm     = 64 << 10 // bytes of a form without its files
	visitorFilesMinute = 120      // downloads of a visitor
)

// visitorFile is a file of a message as a visitor sees it.
type visitorFile struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Removed  bool   `json:"removed,omitempty"` // it is no longer kept
}

// visitorFiles converts the attachments of a message.
func visitorFiles(attachments []agent.Attachment) []visitorFile {
	var files []visitorFile
	for _, a := range attachments {
		files = append(files, visitorFile{
			Name:     a.Name,
			MimeType: a.MimeType,
			Size:     a.Size,
			Removed:  a.Status != agent.AttachmentStored,
		})
	}
	return files
}

// filesAllowed describes the files that visitors may send.
type filesAllowed struct {
	Max     int      `json:"max"`      // of one message
	MaxSize int64    `json:"max_size"` // bytes of a file
	Types   []string `json:"types"`    // extensions
}

// visitorFilesAllowed returns the files that a widget accepts, or nil if it accepts none.
func visitorFilesAllowed(w *gateways.Widget) *filesAllowed {
	if !w.TakesFiles() {
		return nil
	}
	return &filesAllowed{w.MaxFiles, int64(w.MaxFileSize) << 20, w.FileTypes}
}

// receiveWithFiles receives a visitor's message as a form with files.
func receiveWithFiles(
	call *rest.Call,
	widget *gateways.Widget,
	visitor gateways.Visitor,
) (id string, isNew bool, err error) {
	upload, err := widget.BeginUpload(call, visitor)
	if err != nil {
		return "", false, err
	}
	defer upload.Close()
	fields := map[string]string{
		"id":     "",
		"text":   "",
		"email":  "",
		"person": "",
	}
	part, err := rest.FilePartUpTo(call, widget.MaxBytes()+maxVisitorForm, "file", fields)
	if err != nil {
		return "", false, err
	}
	for more := true; more; {
		if err := upload.Receive(part.FileName(), part); err != nil {
			return "", false, err
		}
		if more, err = part.NextFile("file", fields); err != nil {
			return "", false, err
		}
	}
	isNew, err = upload.Finish(call, agent.VisitorMessage{
		ID:     fields["id"],
		Text:   fields["text"],
		Email:  fields["email"],
		Person: fields["person"] == "true",
	})
	return fields["id"], isNew, err
}

// visitorFile sends a visitor a file of their conversation as a download: it never
// opens as a page of this server.
func (s *Server) visitorFile(c echo.Context) error {
	widget, visitor, err := s.admitVisitor(c)
	if err == nil {
		err = s.limiter.CountNamed(c, rest.Widget, "files "+widget.ID+visitor.ID, visitorFilesMinute)
	}
	if err != nil {
		return err
	}
	message, err := strconv.ParseInt(c.Param("message"), 10, 64)
	if err != nil {
		return agent.NotFound("attachment", c.Param("message"))
	}
	n, err := strconv.Atoi(c.Param("index"))
	if err != nil {
		return agent.NotFound("attachment", c.Param("index"))
	}
	file, err := widget.File(c.Request().Context(), visitor, message, n)
	if err != nil {
		return err
	}
	return writeAttachment(&rest.Call{Context: c.Request().Context(), HTTP: c}, file)
}
