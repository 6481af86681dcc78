package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Conversation is an exchange of messages with one contact, through one gateway
// or none.
type Conversation struct {
	ID               string             `json:"id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	ContactID        string             `json:"contact_id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	GatewayID        string             `json:"gateway_id" example:""`
	ExternalThreadID string             `json:"external_thread_id" doc:"The id of the thread on the gateway's platform."`
	Muted            bool               `json:"muted" doc:"Automatic replies are off because a person is answering."`
	Status           ConversationStatus `json:"status" enum:"open,snoozed,resolved" doc:"A message from the contact reopens it." example:"open"`
	Assignee         *string            `json:"assignee" types:"null" doc:"Email address of the person responsible; null for none." example:"ada@example.com"`
	NeedsHuman       bool               `json:"needs_human" doc:"The contact is waiting for a person. A person's answer clears it."`
	Unread           int                `json:"unread" doc:"The contact's messages that were neither read nor answered." example:"2"`
	Metadata         json.RawMessage    `json:"metadata" doc:"Any JSON object."`
	CreatedAt        Time               `json:"created_at" format:"date-time"`
	UpdatedAt        Time               `json:"updated_at" format:"date-time"`
	LastMessageID    int64              `json:"-"` // 0: none
}

// ConversationStatus is the state of a conversation.
type ConversationStatus string

// The states of a conversation.
const (
	ConversationOpen     ConversationStatus = "open"
	ConversationSnoozed  ConversationStatus = "snoozed"
	ConversationResolved ConversationStatus = "resolved"
)

// ConversationStates lists every status that a conversation can have.
var ConversationStates = []ConversationStatus{ConversationOpen, ConversationSnoozed, ConversationResolved}

// ConversationSummary is a conversation as lists show it.
type ConversationSummary struct {
	Conversation
	LastMessage *MessagePreview `json:"last_message" types:"null" doc:"The newest message from or to the contact."`
	Contact     *ContactPreview `json:"contact" types:"null"`
	Gateway     *GatewayPreview `json:"gateway" types:"null" doc:"null for a chat conversation, or if the gateway was deleted."`
}

// MessagePreview is the beginning of a message.
type MessagePreview struct {
	ID        int64       `json:"id" example:"17"`
	Role      MessageRole `json:"role" enum:"user,assistant" example:"user"`
	Author    string      `json:"author" enum:"contact,bot,human" doc:"Who wrote it." example:"contact"`
	Content   string      `json:"content" doc:"The first 200 characters." example:"Where is my order?"`
	CreatedAt Time        `json:"created_at" format:"date-time"`
}

// ContactPreview names the contact of a conversation.
type ContactPreview struct {
	ID    string   `json:"id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	Name  string   `json:"name" example:"Ada Lovelace"`
	Email string   `json:"email" example:"ada@example.com"`
	Phone string   `json:"phone" example:"+1 555 0100"`
	Tags  []string `json:"tags" example:"[\"vip\"]"`
}

// GatewayPreview names the gateway of a conversation.
type GatewayPreview struct {
	ID     string        `json:"id" example:"gateway-06f1q2s3t4v5a6b7c8d9"`
	Type   GatewayType   `json:"type" example:"email"`
	Name   string        `json:"name" example:"Support mail"`
	Status GatewayStatus `json:"status" example:"active"`
}

// ConversationChange is a partial update of a conversation; null clears.
type ConversationChange struct {
	ContactID Optional[string]          `json:"contact_id,omitempty" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	GatewayID Optional[string]          `json:"gateway_id,omitempty"`
	Muted     Optional[bool]            `json:"muted,omitempty"`
	Metadata  Optional[json.RawMessage] `json:"metadata,omitempty" doc:"Any JSON object."`
	InboxChange
}

// InboxChange is a partial update of conversations in the inbox.
type InboxChange struct {
	Status     Optional[ConversationStatus] `json:"status,omitempty" enum:"open,snoozed,resolved" doc:"Resolving marks the conversation as read."`
	Assignee   Optional[string]             `json:"assignee,omitempty" doc:"Email address, or me; null for none." example:"me"`
	NeedsHuman Optional[bool]               `json:"needs_human,omitempty"`
	Read       Optional[bool]               `json:"read,omitempty" doc:"true marks it as read, false as unread."`
}

// Apply writes the given fields into conversation.
func (ch InboxChange) Apply(conversation *Conversation) {
	if ch.Status.Given {
		conversation.Status = cmp.Or(ch.Status.Value, ConversationOpen)
	}
	if ch.Assignee.Given {
		conversation.Assignee = nil
		if email := NormalEmail(ch.Assignee.Value); email != "" {
			conversation.Assignee = &email
		}
	}
	ch.NeedsHuman.Into(&conversation.NeedsHuman)
	switch {
	case ch.Read.Given && !ch.Read.Value:
		conversation.Unread = max(conversation.Unread, 1)
	case ch.Read.Given, ch.Status.Given && conversation.Status == ConversationResolved:
		conversation.Unread = 0
	}
}

// Apply writes the given fields into c.
func (ch ConversationChange) Apply(c *Conversation) {
	ch.ContactID.Into(&c.ContactID)
	ch.GatewayID.Into(&c.GatewayID)
	ch.Muted.Into(&c.Muted)
	ch.Metadata.Into(&c.Metadata)
	ch.InboxChange.Apply(c)
	c.Metadata = defaultObject(c.Metadata)
}

// Validate checks the fields that clients set.
func (c *Conversation) Validate() error {
	var is Issues
	is.checkText("contact_id", c.ContactID, 100)
	is.checkText("gateway_id", c.GatewayID, 100)
	is.Check(
		c.Status == "" || slices.Contains(ConversationStates, c.Status),
		"status",
		"must be open, snoozed or resolved",
	)
	if c.Assignee != nil {
		is.checkEmail("assignee", *c.Assignee, false)
	}
	is.checkObject("metadata", c.Metadata)
	return is.Err()
}

// Prefixes of a contact's external_id, before the id by which a platform
// identifies them.
const (
	TelegramContact = "telegram:"
	SlackContact    = "slack:"
	DiscordContact  = "discord:"
	WebContact      = "visitor:"
)

// Recipient returns the recipient of messages in the conversation on a gateway
// of the given type: the platform's thread or, if there is none yet, the
// contact's id on the platform. Email goes to the contact's address. It returns
// "" if there is no recipient.
func (c *Conversation) Recipient(gatewayType GatewayType, contact *Contact) string {
	switch {
	case gatewayType == GatewayEmail:
		return contact.Email
	case c.ExternalThreadID != "":
		return c.ExternalThreadID
	case gatewayType == GatewaySMS:
		return contact.Phone
	case gatewayType == GatewayWhatsApp:
		return cmp.Or(contact.WhatsApp, contact.Phone)
	case gatewayType == GatewaySlack && strings.HasPrefix(contact.ExternalID, SlackContact):
		return strings.TrimPrefix(contact.ExternalID, SlackContact)
	case gatewayType == GatewayTelegram && strings.HasPrefix(contact.ExternalID, TelegramContact):
		return strings.TrimPrefix(contact.ExternalID, TelegramContact)
	case gatewayType == GatewayWebhook:
		return cmp.Or(contact.ExternalID, contact.ID)
	}
	return ""
}

// MessageRole is the author's role.
type MessageRole string

// The roles of a message.
const (
	MessageUser      MessageRole = "user"
	MessageAssistant MessageRole = "assistant"
	MessageSystem    MessageRole = "system"
	MessageTool      MessageRole = "tool"
	MessageNote      MessageRole = "note" // from a person to colleagues: neither sent nor shown to the model
)

var messageRoles = []MessageRole{MessageUser, MessageAssistant, MessageSystem, MessageTool, MessageNote}

// Message is one message of a conversation. Its id increases within the agent.
type Message struct {
	ID             int64           `json:"id" example:"17"`
	ConversationID string          `json:"conversation_id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	Role           MessageRole     `json:"role" enum:"user,assistant,system,tool,note" example:"user"`
	Content        string          `json:"content" example:"Where is my order?"`
	Metadata       json.RawMessage `json:"metadata" doc:"Any JSON object."`
	Feedback       *Feedback       `json:"feedback,omitempty" doc:"A person's rating of an answer. Absent if there is none."`
	CreatedAt      Time            `json:"created_at" format:"date-time"`
}

// Feedback is a person's rating of an answer.
type Feedback struct {
	Rating  *int   `json:"rating" enum:"1,-1" nullable:"true" doc:"1 for good, -1 for bad, null for neither." example:"1"`
	Comment string `json:"comment" doc:"At most 2000 characters." example:"Names the right page."`
}

// RatedAnswer is an answer with its feedback, as a list shows it.
type RatedAnswer struct {
	MessageID      int64  `json:"message_id" example:"18"`
	ConversationID string `json:"conversation_id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	GatewayID      string `json:"gateway_id" doc:"The gateway of the conversation; empty in chats." example:""`
	ContactName    string `json:"contact_name" doc:"Empty if the conversation has no contact." example:""`
	Question       string `json:"question" doc:"What was asked, its first 2000 characters." example:"Where is my order?"`
	Answer         string `json:"answer" doc:"Its first 2000 characters." example:"It was sent on Monday."`
	Model          string `json:"model" doc:"The model that answered, if it is known." example:"gpt-5-mini"`
	Feedback
	CreatedAt Time `json:"created_at" doc:"When the answer was given." format:"date-time"`
}

// FeedbackChange is a partial update of a message's feedback; null clears.
type FeedbackChange struct {
	Rating  Optional[int]    `json:"rating,omitempty" minimum:"-1" maximum:"1" doc:"1 for good, -1 for bad, null for neither." example:"1"`
	Comment Optional[string] `json:"comment,omitempty" doc:"At most 2000 characters." example:"Names the right page."`
}

// Apply returns feedback with the given fields changed, or nil if it is then
// empty.
func (ch FeedbackChange) Apply(before *Feedback) (*Feedback, error) {
	var feedback Feedback
	if before != nil {
		feedback = *before
	}
	ch.Comment.Into(&feedback.Comment)
	if ch.Rating.Given {
		if feedback.Rating = nil; !ch.Rating.Null {
			feedback.Rating = &ch.Rating.Value
		}
	}
	var is Issues
	is.Check(
		feedback.Rating == nil || *feedback.Rating == 1 || *feedback.Rating == -1,
		"rating",
		"must be 1, -1 or null",
	)
	is.checkText("comment", feedback.Comment, 2000)
	if feedback == (Feedback{}) {
		return nil, is.Err()
	}
	return &feedback, is.Err()
}

// MaxMessageLength limits the content of a message, in characters.
const MaxMessageLength = 100_000

// ChatMessageMetadata is the metadata of a message to chat, which answers it itself:
// message.received is emitted but starts no workflow.
var ChatMessageMetadata = json.RawMessage(`{"via":"chat"}`)

// Validate checks the fields that clients set.
func (m *Message) Validate() error {
	var is Issues
	is.Check(m.Role != "", "role", "is required")
	is.Check(
		m.Role == "" || slices.Contains(messageRoles, m.Role),
		"role",
		"must be user, assistant, system, tool or note",
	)
	is.Check(m.Content != "", "content", "is required")
	is.checkText("content", m.Content, MaxMessageLength)
	is.checkObject("metadata", m.Metadata)
	return is.Err()
}
