package agent

import "encoding/json"

// Inbound is a message that somebody sent to an agent through a platform.
type Inbound struct {
	ID       string          // the platform's own id of it, unique within the gateway; a repeat changes nothing
	Thread   string          // the platform's conversation; messages of one thread make one Conversation
	From     ContactChange   // who sent it: the identifiers that the platform tells, and a name
	Text     string          // what it says; may be empty when Metadata tells of attachments
	Metadata json.RawMessage // a JSON object kept on the message: attachments (names, types, sizes, ids), the platform's own facts; nil for none
	// ReplyToken is a credential that one answer to this message is sent with,
	// until ReplyUntil; it is sealed in the agent's file. Empty: none.
	ReplyToken string
	ReplyUntil Time
}
