package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Conversation is an exchange of messages with one contact, over one gateway
// or none.
type Conversation struct {
	ID               string          `json:"id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	ContactID        string          `json:"contact_id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	GatewayID        string          `json:"gateway_id" example:""`
	ExternalThreadID string          `json:"external_thread_id" doc:"The thread on the gateway's platform."`
	Muted            bool            `json:"muted" doc:"Automatic replies rest, because a person answers."`
	Metadata         json.RawMessage `json:"metadata" doc:"Any JSON object."`
	CreatedAt        Time            `json:"created_at" format:"date-time"`
	UpdatedAt        Time            `json:"updated_at" format:"date-time"`
}

// ConversationChange is what clients set on a conversation; null clears.
type ConversationChange struct {
	ContactID Optional[string]          `json:"contact_id,omitempty" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	GatewayID Optional[string]          `json:"gateway_id,omitempty"`
	Muted     Optional[bool]            `json:"muted,omitempty"`
	Metadata  Optional[json.RawMessage] `json:"metadata,omitempty" doc:"Any JSON object."`
}

// Apply writes the given fields into c.
func (ch ConversationChange) Apply(c *Conversation) {
	ch.ContactID.Into(&c.ContactID)
	ch.GatewayID.Into(&c.GatewayID)
	ch.Muted.Into(&c.Muted)
	ch.Metadata.Into(&c.Metadata)
	c.Metadata = orObject(c.Metadata)
}

// Validate checks the fields that clients set.
func (c *Conversation) Validate() error {
	var is Issues
	is.checkText("contact_id", c.ContactID, 100)
	is.checkText("gateway_id", c.GatewayID, 100)
	is.checkObject("metadata", c.Metadata)
	return is.Err()
}

// Beginnings of a contact's external_id, before the id by which a platform
// knows them.
const (
	TelegramContact = "telegram:"
	SlackContact    = "slack:"
	DiscordContact  = "discord:"
)

// Recipient is whom a message in the conversation goes to, over a gateway of a
// type: the platform's thread, or, where there was none yet, what the platform
// knows the contact by. Mail goes to the contact's address. Empty: nobody.
func (c *Conversation) Recipient(t GatewayType, contact *Contact) string {
	switch {
	case t == GatewayEmail:
		return contact.Email
	case c.ExternalThreadID != "":
		return c.ExternalThreadID
	case t == GatewaySMS:
		return contact.Phone
	case t == GatewayWhatsApp:
		return cmp.Or(contact.WhatsApp, contact.Phone)
	case t == GatewaySlack && strings.HasPrefix(contact.ExternalID, SlackContact):
		return strings.TrimPrefix(contact.ExternalID, SlackContact)
	case t == GatewayTelegram && strings.HasPrefix(contact.ExternalID, TelegramContact):
		return strings.TrimPrefix(contact.ExternalID, TelegramContact)
	case t == GatewayWebhook:
		return cmp.Or(contact.ExternalID, contact.ID)
	}
	return ""
}

// MessageRole is who speaks.
type MessageRole string

// The roles of a message.
const (
	MessageUser      MessageRole = "user"
	MessageAssistant MessageRole = "assistant"
	MessageSystem    MessageRole = "system"
	MessageTool      MessageRole = "tool"
)

var messageRoles = []MessageRole{MessageUser, MessageAssistant, MessageSystem, MessageTool}

// Message is one turn of a conversation. Its id grows within the agent.
type Message struct {
	ID             int64           `json:"id" example:"17"`
	ConversationID string          `json:"conversation_id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	Role           MessageRole     `json:"role" enum:"user,assistant,system,tool" example:"user"`
	Content        string          `json:"content" example:"Where is my order?"`
	Metadata       json.RawMessage `json:"metadata" doc:"Any JSON object."`
	Feedback       *Feedback       `json:"feedback,omitempty" doc:"What a person thinks of it, an answer; absent without."`
	CreatedAt      Time            `json:"created_at" format:"date-time"`
}

// Feedback is what a person thinks of an answer.
type Feedback struct {
	Rating  *int   `json:"rating" enum:"1,-1" nullable:"true" doc:"1 for good, -1 for bad, null for neither." example:"1"`
	Comment string `json:"comment" doc:"At most 2000 characters." example:"Names the right page."`
}

// FeedbackChange is what clients set on a message's feedback; null clears.
type FeedbackChange struct {
	Rating  Optional[int]    `json:"rating,omitempty" enum:"1,-1" doc:"1 for good, -1 for bad, null for neither." example:"1"`
	Comment Optional[string] `json:"comment,omitempty" doc:"At most 2000 characters." example:"Names the right page."`
}

// Apply returns feedback with the given fields changed; nil when nothing of it
// is left.
func (ch FeedbackChange) Apply(before *Feedback) (*Feedback, error) {
	var f Feedback
	if before != nil {
		f = *before
	}
	ch.Comment.Into(&f.Comment)
	if ch.Rating.Given {
		if f.Rating = nil; !ch.Rating.Null {
			f.Rating = &ch.Rating.Value
		}
	}
	var is Issues
	is.Check(f.Rating == nil || *f.Rating == 1 || *f.Rating == -1, "rating", "must be 1, -1 or null")
	is.checkText("comment", f.Comment, 2000)
	if f == (Feedback{}) {
		return nil, is.Err()
	}
	return &f, is.Err()
}

// MaxMessageLength bounds the content of a message, in characters.
const MaxMessageLength = 100_000

// SaidToChat is the metadata of a message that was said to chat, which answers
// it itself: it emits message.received, which starts no workflow.
var SaidToChat = json.RawMessage(`{"via":"chat"}`)

// Validate checks the fields that clients set.
func (m *Message) Validate() error {
	var is Issues
	is.Check(m.Role != "", "role", "is required")
	is.Check(m.Role == "" || slices.Contains(messageRoles, m.Role), "role", "must be user, assistant, system or tool")
	is.Check(m.Content != "", "content", "is required")
	is.checkText("content", m.Content, MaxMessageLength)
	is.checkObject("metadata", m.Metadata)
	return is.Err()
}
