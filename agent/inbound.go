package agent

import (
	"encoding/json"
	"strings"
)

// Inbound is a message sent to an agent through a platform.
type Inbound struct {
	ID       string          // the platform's id of the message, unique within the gateway; a repeat is ignored
	Thread   string          // the platform's conversation; messages of one thread form one Conversation
	From     ContactChange   // the sender: identifiers from the platform, and a name
	Text     string          // may be empty if there are attachments
	Metadata json.RawMessage // a JSON object stored with the message: what the platform says of it; nil for none
	// Attachments are the message's files, which are downloaded once it is
	// stored. Those after the first MaxMessageAttachments are dropped.
	Attachments []Attachment
	// Album is the platform's id of an album: its messages are stored as one. Empty: none.
	Album string
	// ReplyToken is a credential for sending one answer to this message, valid
	// until ReplyUntil. It is stored encrypted in the agent's file. Empty:
	// none.
	ReplyToken string
	ReplyUntil Time
	// Hashed reports that ID is a hash of the content rather than an id. People
	// repeat themselves, so it is only remembered for signature.MaxAge.
	Hashed bool
	// Person reports that the sender asks for a person, which mutes automatic
	// answers.
	Person bool
	// Simulated reports that nobody sent it. What results from it is only sent with
	// SendReplies.
	Simulated, SendReplies bool
	// Email is an address that the sender claims without proof. It is stored on
	// the contact unless another contact has it, and never used to find a
	// contact.
	Email string
}

// AnswerOptions specifies how a message is answered automatically.
type AnswerOptions struct {
	// Public reports that anyone may have written it: the agent's tools are not
	// offered.
	Public bool
	// OnText receives the answer as it is generated; may be nil.
	OnText func(piece string)
	// Handover is called when the model hands the conversation over to a person;
	// nil: it cannot.
	Handover func()
}

// noText replaces the text of a message that has none.
const noText = "[attachment]"

// Message returns the message to store: its text within the limits of a
// message, and its metadata with the platform's id as external_id.
func (in *Inbound) Message() Message {
	message := Message{Role: MessageUser, Content: Clip(plain(in.Text), MaxMessageLength)}
	if strings.TrimSpace(message.Content) == "" {
		message.Content = noText
	}
	facts := map[string]json.RawMessage{}
	var is Issues
	if is.checkObject("metadata", in.Metadata); len(in.Metadata) > 0 && len(is) == 0 {
		_ = json.Unmarshal(in.Metadata, &facts)
	}
	facts["external_id"], _ = json.Marshal(Clip(plain(in.ID), 500))
	delete(facts, "simulated") // a platform cannot say so
	if in.Simulated {
		facts["simulated"] = json.RawMessage("true")
	}
	if in.Simulated && in.SendReplies {
		facts["send"] = json.RawMessage("true")
	}
	addAttachments(facts, in.Attachments)
	message.Metadata, _ = json.Marshal(facts)
	if len(message.Metadata) > MaxObjectBytes {
		message.Metadata, _ = json.Marshal(map[string]json.RawMessage{"external_id": facts["external_id"]})
	}
	return message
}

// Sender returns the contact as the platform describes it. Invalid fields are
// dropped, and a contact without a name is named by its handle.
func (in *Inbound) Sender() Contact {
	var contact Contact
	in.From.Apply(&contact)
	contact.Name, contact.Notes = Clip(plain(contact.Name), 200), Clip(plain(contact.Notes), 20_000)
	for _, f := range []struct {
		value *string
		check func(*Issues, string)
	}{
		{&contact.Email, func(is *Issues, v string) { is.checkEmail("", v, false) }},
		{&contact.Phone, func(is *Issues, v string) {
			is.checkText("", v, 50)
			is.Check(strings.ContainsAny(v, "0123456789"), "", "")
		}},
		{&contact.Telegram, func(is *Issues, v string) { is.checkText("", v, 100) }},
		{&contact.WhatsApp, func(is *Issues, v string) { is.checkText("", v, 100) }},
		{&contact.SocialHandle, func(is *Issues, v string) { is.checkText("", v, 200) }},
		{&contact.ExternalID, func(is *Issues, v string) { is.checkText("", v, 200) }},
	} {
		var is Issues
		*f.value = strings.ToValidUTF8(*f.value, "\uFFFD")
		if f.check(&is, *f.value); len(is) > 0 {
			*f.value = ""
		}
	}
	for _, handle := range []string{
		contact.Telegram, contact.SocialHandle, contact.Email, contact.Phone, contact.WhatsApp, contact.ExternalID,
		"Unknown",
	} {
		if contact.Name == "" {
			contact.Name = handle
		}
	}
	contact.Name = Clip(contact.Name, 200)
	if contact.Validate() != nil { // tags or metadata are invalid
		contact.Tags, contact.Metadata = []string{}, defaultObject(nil)
	}
	return contact
}

// plain converts text from a platform to text that can be stored.
func plain(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}
