package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listConversationsIn struct {
	rest.ListParams
	ContactID []string `query:"contact_id" doc:"Conversations with this contact; may be repeated."`
	GatewayID []string `query:"gateway_id" doc:"Conversations over this gateway; may be repeated."`
	inboxFilterIn
}

type conversationsOut struct {
	Conversations []agent.ConversationSummary `json:"conversations"`
	Meta          rest.Meta                   `json:"meta"`
}

func (s *Server) listConversations(c *rest.Call, in *listConversationsIn) (conversationsOut, error) {
	page, err := in.Page("created_at", "updated_at", "last_message_at")
	if err != nil {
		return conversationsOut{}, err
	}
	f, err := in.filter(c)
	if err != nil {
		return conversationsOut{}, err
	}
	f.ContactIDs, f.GatewayIDs = in.ContactID, in.GatewayID
	found, total, err := c.DB.Conversations(c, f, page)
	return conversationsOut{found, rest.MetaOf(page, total)}, err
}

type createConversationIn struct{ Body agent.ConversationChange }

func conversationLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/conversations/" + out.(agent.Conversation).ID
}

func (s *Server) createConversation(c *rest.Call, in *createConversationIn) (agent.Conversation, error) {
	if err := resolveMe(c, &in.Body.InboxChange); err != nil {
		return agent.Conversation{}, err
	}
	return c.DB.CreateConversation(c, in.Body)
}

type conversationIn struct {
	ID string `path:"conversationId" doc:"Id of the conversation." example:"conversation-06f1q2s3t4v5a6b7c8d9"`
}

// newestMessages is the number of messages in the response with a conversation.
const newestMessages = 200

type conversationOut struct {
	agent.ConversationSummary
	Messages []messageOut `json:"messages" doc:"The newest 200, in chronological order."`
}

func (s *Server) getConversation(c *rest.Call, in *conversationIn) (conversationOut, error) {
	_, messages, err := c.DB.Conversation(c, in.ID, newestMessages)
	if err != nil {
		return conversationOut{}, err
	}
	summary, err := c.DB.ConversationSummary(c, in.ID)
	if err != nil {
		return conversationOut{}, err
	}
	out, err := messagesWithDelivery(c, messages)
	return conversationOut{summary, out}, err
}

// messageOut is a message with its delivery.
type messageOut struct {
	agent.Message
	Delivery *store.MessageDelivery `json:"delivery" types:"null" doc:"The delivery over the gateway; null if the message is not sent."`
}

func messagesWithDelivery(c *rest.Call, messages []agent.Message) ([]messageOut, error) {
	deliveries, err := c.DB.MessageDeliveries(c, messages)
	out := make([]messageOut, len(messages))
	for i, m := range messages {
		out[i] = messageOut{m, deliveries[i]}
	}
	return out, err
}

func oneMessageOut(c *rest.Call, m agent.Message) (messageOut, error) {
	out, err := messagesWithDelivery(c, []agent.Message{m})
	return out[0], err
}

type updateConversationIn struct {
	conversationIn
	Body agent.ConversationChange
}

func (s *Server) updateConversation(c *rest.Call, in *updateConversationIn) (agent.ConversationSummary, error) {
	if err := resolveMe(c, &in.Body.InboxChange); err != nil {
		return agent.ConversationSummary{}, err
	}
	if _, err := c.DB.UpdateConversation(c, in.ID, in.Body); err != nil {
		return agent.ConversationSummary{}, err
	}
	return c.DB.ConversationSummary(c, in.ID)
}

func (s *Server) deleteConversation(c *rest.Call, in *conversationIn) (none, error) {
	return none{}, c.DB.DeleteConversation(c, in.ID)
}

type listMessagesIn struct {
	conversationIn
	Cursor string `query:"cursor" doc:"next_cursor of the previous page."`
	Limit  *int   `query:"limit" doc:"1 to 200." example:"50"`
	Order  string `query:"order" doc:"asc for oldest first, desc for newest first." example:"asc"`
}

// CursorMeta has the cursor of a list's next page.
type CursorMeta struct {
	NextCursor *string `json:"next_cursor" doc:"Cursor of the next page; null at the end."`
	HasMore    bool    `json:"has_more"`
	Limit      int     `json:"limit" example:"50"`
}

type messagesOut struct {
	Messages []messageOut `json:"messages"`
	Meta     CursorMeta   `json:"meta"`
}

func (s *Server) listMessages(call *rest.Call, in *listMessagesIn) (messagesOut, error) {
	limit, err := rest.CheckLimit(in.Limit, rest.DefaultLimit, rest.MaxLimit)
	if err != nil {
		return messagesOut{}, err
	}
	if in.Order != "" && in.Order != "asc" && in.Order != "desc" {
		return messagesOut{}, agent.Invalid("order", "must be asc or desc")
	}
	after, err := readCursor(in.Cursor)
	if err != nil {
		return messagesOut{}, err
	}
	page, more, err := call.DB.Messages(call, in.ID, after, limit, in.Order == "desc")
	meta := CursorMeta{Limit: limit, HasMore: more}
	if more {
		next := base64.RawURLEncoding.EncodeToString([]byte("m" + strconv.FormatInt(page[len(page)-1].ID, 10)))
		meta.NextCursor = &next
	}
	if err != nil {
		return messagesOut{}, err
	}
	out, err := messagesWithDelivery(call, page)
	return messagesOut{out, meta}, err
}

// readCursor returns the message id of a cursor, or 0 for "".
func readCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(raw) > 1 && raw[0] == 'm' {
		if id, err := strconv.ParseInt(
			string(raw[1:]),
			10,
			64,
		); err == nil && id > 0 {
			return id, nil
		}
	}
	return 0, agent.Invalid("cursor", "is not a cursor of this list")
}

type appendMessageIn struct {
	conversationIn
	Body struct {
		Role     agent.MessageRole `json:"role" required:"true" enum:"user,assistant,system,tool,note" doc:"note: from a person to colleagues; neither sent nor passed to the model." example:"user"`
		Content  string            `json:"content" required:"true" doc:"At most 100000 characters." example:"Where is my order?"`
		Metadata json.RawMessage   `json:"metadata,omitempty" doc:"Any JSON object."`
		Send     bool              `json:"send,omitempty" doc:"Send an assistant's message through the conversation's gateway. metadata.delivery has the result."`
	}
}

func messageLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/conversations/" + out.(messageOut).ConversationID + "/messages"
}

func (s *Server) appendMessage(c *rest.Call, in *appendMessageIn) (messageOut, error) {
	m, err := s.addMessage(c, in)
	if err != nil {
		return messageOut{}, err
	}
	return oneMessageOut(c, m)
}

func (s *Server) addMessage(call *rest.Call, in *appendMessageIn) (agent.Message, error) {
	message := agent.Message{
		ConversationID: in.ID,
		Role:           in.Body.Role,
		Content:        in.Body.Content,
		Metadata:       in.Body.Metadata,
	}
	if len(message.Metadata) == 0 || string(message.Metadata) == "null" {
		message.Metadata = json.RawMessage("{}")
	}
	if err := message.Validate(); err != nil {
		return message, err
	}
	chain := store.ChainOf(call)
	switch {
	case message.Role == agent.MessageAssistant && chain.Depth > 0:
		message.Metadata = withWorkflowAuthor(message.Metadata, chain.Root)
	case message.Role == agent.MessageAssistant || message.Role == agent.MessageNote:
		message.Metadata = withHumanAuthor(message.Metadata, call.Identity.Email)
	}
	if in.Body.Send {
		return s.options.Gateways.SendMessage(call, call.DB, message)
	}
	return call.DB.AppendMessage(call, message)
}

// withHumanAuthor marks a message as written by a person, with their email
// address if it is known.
func withHumanAuthor(metadata json.RawMessage, email string) json.RawMessage {
	author := map[string]string{"author": "human"}
	if email != "" {
		author["author_email"] = email
	}
	return withAuthor(metadata, author)
}

// withWorkflowAuthor marks a message as written by an execution, which sent the request.
func withWorkflowAuthor(metadata json.RawMessage, executionID string) json.RawMessage {
	return withAuthor(metadata, map[string]string{"author": agent.AuthorWorkflow, "execution_id": executionID})
}

// withAuthor replaces what metadata says about a message's author.
func withAuthor(metadata json.RawMessage, author map[string]string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(metadata, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for _, name := range []string{"author", "author_email", "workflow_id", "execution_id", "node_id"} {
		delete(fields, name)
	}
	for name, value := range author {
		fields[name], _ = json.Marshal(value)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return metadata
	}
	return slices.Clone(raw)
}

type feedbackIn struct {
	ID   int64 `path:"messageId" doc:"Id of the answer." example:"18"`
	Body agent.FeedbackChange
}

func (s *Server) updateFeedback(c *rest.Call, in *feedbackIn) (agent.Message, error) {
	return c.DB.UpdateFeedback(c, in.ID, in.Body)
}

type listFeedbackIn struct {
	rest.ListParams
	Rating string     `query:"rating" enum:"good,bad" doc:"good or bad; empty for both, and comments without a rating." example:"bad"`
	From   agent.Time `query:"from" doc:"Answers from this time on." format:"date-time"`
	To     agent.Time `query:"to" doc:"Answers before this time." format:"date-time"`
}

type feedbackOut struct {
	Feedback []agent.RatedAnswer `json:"feedback"`
	Meta     rest.Meta           `json:"meta"`
}

func (s *Server) listFeedback(call *rest.Call, in *listFeedbackIn) (feedbackOut, error) {
	page, err := in.Page("created_at")
	if err != nil {
		return feedbackOut{}, err
	}
	rating, known := map[string]int{
		"":     0,
		"good": 1,
		"bad":  -1,
	}[in.Rating]
	if !known {
		return feedbackOut{}, agent.Invalid("rating", "must be good or bad")
	}
	found, total, err := call.DB.Feedback(
		call,
		store.FeedbackFilter{Rating: rating, From: in.From, To: in.To},
		page,
	)
	return feedbackOut{found, rest.MetaOf(page, total)}, err
}
