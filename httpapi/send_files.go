package httpapi

import (
	"net/http"
	"strings"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
)

var sendFilesForm = rest.Form{
	File:   "file",
	Fields: map[string]string{"content": "The text of the message; may be empty."},
}

// sendFiles sends a person's files to a visitor of a website.
func (s *Server) sendFiles(c *rest.Call) error {
	in, err := rest.Bind[conversationIn](c)
	if err != nil {
		return err
	}
	if err := c.DB.TakesFiles(c, in.ID); err != nil {
		return err
	}
	fields := map[string]string{"content": ""}
	part, err := rest.FilePartUpTo(
		c,
		agent.MaxMessageAttachments*agent.MaxAttachmentBytes+maxVisitorForm,
		"file",
		fields,
	)
	if err != nil {
		return err
	}
	files := gateways.NewFiles(c.DB, agent.MaxMessageAttachments, agent.MaxAttachmentBytes)
	defer files.Discard()
	for more := true; more; {
		if err := files.Receive(c, part.FileName(), part, nil); err != nil {
			return err
		}
		if more, err = part.NextFile("file", fields); err != nil {
			return err
		}
	}
	m, err := c.DB.SendFiles(c, agent.Message{
		ConversationID: in.ID,
		Role:           agent.MessageAssistant,
		Content:        strings.TrimSpace(fields["content"]),
		Metadata:       withHumanAuthor(nil, c.Identity.Email),
	}, files.Stored())
	if err != nil {
		return err
	}
	out, err := oneMessageOut(c, m)
	if err != nil {
		return err
	}
	c.HTTP.Response().Header().Set("Location", messageLocation(c, out))
	return rest.WriteJSON(c.HTTP, http.StatusCreated, out)
}
