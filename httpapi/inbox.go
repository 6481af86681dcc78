package httpapi

import (
	"slices"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/store"
)

type inboxFilterIn struct {
	Status     string `query:"status" enum:"open,snoozed,resolved" doc:"Conversations with this status." example:"open"`
	Assignee   string `query:"assignee" doc:"me, none or an email address: who is assigned." example:"me"`
	Channel    string `query:"channel" enum:"chat" doc:"chat: conversations without a gateway." example:"chat"`
	Unread     bool   `query:"unread" doc:"true: only conversations with unread messages." example:"true"`
	NeedsHuman bool   `query:"needs_human" doc:"true: only conversations whose contact waits for a person." example:"true"`
}

// filter converts the request. "me" is the caller's email address.
func (in *inboxFilterIn) filter(call *rest.Call) (store.ConversationFilter, error) {
	conversationFilter := store.ConversationFilter{
		Status:     agent.ConversationStatus(in.Status),
		Chat:       in.Channel == "chat",
		Unread:     in.Unread,
		NeedsHuman: in.NeedsHuman,
	}
	if conversationFilter.Status != "" && !slices.Contains(agent.ConversationStates, conversationFilter.Status) {
		return conversationFilter, agent.Invalid("status", "must be open, snoozed or resolved")
	}
	if in.Channel != "" && !conversationFilter.Chat {
		return conversationFilter, agent.Invalid("channel", "must be chat")
	}
	if in.Assignee == "none" {
		conversationFilter.Assignee = agent.Some("")
	} else if in.Assignee != "" {
		email, err := person(call, in.Assignee)
		conversationFilter.Assignee = agent.Some(email)
		return conversationFilter, err
	}
	return conversationFilter, nil
}

// person returns the email address of a person; "me" is the caller.
func person(c *rest.Call, name string) (string, error) {
	if name != "me" {
		return agent.NormalEmail(name), nil
	}
	if c.Identity.Email == "" {
		return "", agent.Invalid("assignee", "cannot be me: the request has no email address")
	}
	return c.Identity.Email, nil
}

// resolveMe replaces "me" with the caller's email address.
func resolveMe(c *rest.Call, change *agent.InboxChange) (err error) {
	if change.Assignee.Given && change.Assignee.Value != "" {
		change.Assignee.Value, err = person(c, change.Assignee.Value)
	}
	return err
}

func (s *Server) countConversations(c *rest.Call, _ *struct{}) (store.InboxCounts, error) {
	return c.DB.InboxCounts(c, c.Identity.Email)
}

// maxConversationBatch limits the conversations of one batch.
const maxConversationBatch = 200

type batchConversationsIn struct {
	Body struct {
		IDs    []string `json:"ids" required:"true" doc:"At most 200 ids." example:"[\"conversation-06f1q2s3t4v5a6b7c8d9\"]"`
		Change struct {
			Muted agent.Optional[bool] `json:"muted,omitempty"`
			agent.InboxChange
		} `json:"change" required:"true"`
	}
}

type batchConversationsOut struct {
	Updated []string `json:"updated" doc:"Ids of the conversations that exist." example:"[\"conversation-06f1q2s3t4v5a6b7c8d9\"]"`
}

func (s *Server) batchConversations(c *rest.Call, in *batchConversationsIn) (batchConversationsOut, error) {
	if n := len(in.Body.IDs); n == 0 || n > maxConversationBatch {
		return batchConversationsOut{}, agent.Invalid("ids", "must have 1 to 200 entries")
	}
	change := agent.ConversationChange{Muted: in.Body.Change.Muted, InboxChange: in.Body.Change.InboxChange}
	if err := resolveMe(c, &change.InboxChange); err != nil {
		return batchConversationsOut{}, err
	}
	updated, err := c.DB.UpdateConversations(c, in.Body.IDs, change)
	return batchConversationsOut{updated}, err
}

func (s *Server) getDraft(c *rest.Call, in *conversationIn) (store.Draft, error) {
	return c.DB.Draft(c, in.ID, c.Identity.Email)
}

type putDraftIn struct {
	conversationIn
	Body struct {
		Text string `json:"text" required:"true" doc:"An empty text deletes it." example:"Your order is"`
	}
}

func (s *Server) putDraft(c *rest.Call, in *putDraftIn) (store.Draft, error) {
	if err := agent.CheckText("text", in.Body.Text, agent.MaxMessageLength); err != nil {
		return store.Draft{}, err
	}
	return c.DB.PutDraft(c, in.ID, c.Identity.Email, in.Body.Text)
}

type messageIn struct {
	conversationIn
	MessageID int64 `path:"messageId" doc:"Id of the message." example:"17"`
}

func (s *Server) resendMessage(c *rest.Call, in *messageIn) (messageOut, error) {
	m, err := c.DB.ResendMessage(c, in.ID, in.MessageID)
	if err != nil {
		return messageOut{}, err
	}
	return oneMessageOut(c, m)
}

type cannedRepliesOut struct {
	Replies []agent.CannedReply `json:"replies"`
	Meta    rest.Meta           `json:"meta"`
}

func (s *Server) listReplies(c *rest.Call, in *rest.ListParams) (cannedRepliesOut, error) {
	page, err := in.Page("shortcut", "created_at")
	if err != nil {
		return cannedRepliesOut{}, err
	}
	found, total, err := c.DB.CannedReplies(c, page)
	return cannedRepliesOut{found, rest.MetaOf(page, total)}, err
}

type createReplyIn struct{ Body agent.CannedReplyChange }

func replyLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/replies/" + out.(agent.CannedReply).ID
}

func (s *Server) createReply(c *rest.Call, in *createReplyIn) (agent.CannedReply, error) {
	return c.DB.CreateCannedReply(c, in.Body)
}

type replyIn struct {
	ID string `path:"replyId" doc:"Id of the canned reply." example:"reply-06f1q2s3t4v5a6b7c8d9"`
}

type updateReplyIn struct {
	replyIn
	Body agent.CannedReplyChange
}

func (s *Server) updateReply(c *rest.Call, in *updateReplyIn) (agent.CannedReply, error) {
	return c.DB.UpdateCannedReply(c, in.ID, in.Body)
}

func (s *Server) deleteReply(c *rest.Call, in *replyIn) (none, error) {
	return none{}, c.DB.DeleteCannedReply(c, in.ID)
}

type simulateIn struct {
	gatewayIn
	Body struct {
		From string `json:"from" required:"true" doc:"The sender's id on the platform: a number, an address, a user id." example:"ada@example.com"`
		Text string `json:"text" required:"true" example:"Where is my order?"`
		Name string `json:"name,omitempty" doc:"The sender's name." example:"Ada Lovelace"`
		Send bool   `json:"send,omitempty" doc:"Really send what results from the message: the agent's answer, and what workflows send. By default it is stored with the delivery status simulated."`
	}
}

func simulatedLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/conversations/" + out.(agent.Message).ConversationID + "/messages"
}

func (s *Server) simulateMessage(c *rest.Call, in *simulateIn) (agent.Message, error) {
	return s.options.Gateways.Simulate(c, c.DB, in.ID, gateways.Simulation{
		From: in.Body.From,
		Text: in.Body.Text,
		Name: in.Body.Name,
		Send: in.Body.Send,
	})
}

type attachmentIn struct {
	MessageID int64 `path:"messageId" doc:"Id of the message." example:"17"`
	Index     int   `path:"index" doc:"Which of metadata.attachments, from 0." minimum:"0" example:"0"`
}

// attachmentFile sends a file of a message.
func (s *Server) attachmentFile(c *rest.Call) error {
	in, err := rest.Bind[attachmentIn](c)
	if err != nil {
		return err
	}
	file, err := c.DB.Attachment(c, in.MessageID, in.Index)
	if err != nil {
		return err
	}
	return writeAttachment(c, file)
}

// writeAttachment sends a file with a media type with which browsers run nothing in it.
func writeAttachment(c *rest.Call, file store.File) error {
	if !agent.IsShownMedia(file.MediaType) {
		file.MediaType = echo.MIMEOctetStream
	}
	return writeFile(c, file)
}
