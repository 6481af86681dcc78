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
func (s *Server) sendFiles(call *rest.Call) error {
	in, err := rest.Bind[conversationIn](call)
	if err != nil {
		return err
	}
	if err := call.DB.TakesFiles(call, in.ID); err != nil {
		return err
	}
	fields := map[string]string{"content": ""}
	part, err := rest.FilePartUpTo(
		call,
		agent.MaxMessageAttachments*agent.MaxAttachmentBytes+maxVisitorForm,
		"file",
		fields,
	)
	if err != nil {
		return err
	}
	files := gateways.NewFiles(call.DB, agent.MaxMessageAttachments, agent.MaxAttachmentBytes)
	defer files.Discard()
	for more := true; more; {
		if err := files.Receive(call, part.FileName(), part, nil); err != nil {
			return err
		}
		if more, err = part.NextFile("file", fields); err != nil {
			return err
		}
	}
	m, err := call.DB.SendFiles(call, agent.Message{
		ConversationID: in.ID,
		Role:           agent.MessageAssistant,
		Content:        strings.TrimSpace(fields["content"]),
		Metadata:       withHumanAuthor(nil, call.Identity.Email),
	}, files.Stored())
	if err != nil {
		return err
	}
	out, err := oneMessageOut(call, m)
	if err != nil {
		return err
	}
	call.HTTP.Response().Header().Set("Location", messageLocation(call, out))
	return rest.WriteJSON(call.HTTP, http.StatusCreated, out)
}
