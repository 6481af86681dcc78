package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Contact is a person that an agent knows.
type Contact struct {
	ID           string          `json:"id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	Name         string          `json:"name" example:"Ada Lovelace"`
	Email        string          `json:"email" example:"ada@example.com"`
	Phone        string          `json:"phone" example:"+1 555 0100"`
	Telegram     string          `json:"chatbot_a" doc:"Telegram user name." example:"@ada"`
	WhatsApp     string          `json:"chatbot_b" doc:"WhatsApp number." example:"+15550100"`
	SocialHandle string          `json:"social_handle" example:"@ada"`
	ExternalID   string          `json:"external_id" example:"crm-42"`
	Notes        string          `json:"notes"`
	Tags         []string        `json:"tags" example:"[\"vip\"]"`
	Metadata     json.RawMessage `json:"metadata" doc:"Any JSON object."`
	CreatedAt    Time            `json:"created_at" format:"date-time"`
	UpdatedAt    Time            `json:"updated_at" format:"date-time"`
}

// ContactChange is a partial update of a contact; null clears a field.
type ContactChange struct {
	Name         Optional[string]          `json:"name,omitempty" example:"Ada Lovelace"`
	Email        Optional[string]          `json:"email,omitempty" example:"ada@example.com"`
	Phone        Optional[string]          `json:"phone,omitempty" example:"+1 555 0100"`
	Telegram     Optional[string]          `json:"chatbot_a,omitempty" example:"@ada"`
	WhatsApp     Optional[string]          `json:"chatbot_b,omitempty" example:"+15550100"`
	SocialHandle Optional[string]          `json:"social_handle,omitempty" example:"@ada"`
	ExternalID   Optional[string]          `json:"external_id,omitempty" example:"crm-42"`
	Notes        Optional[string]          `json:"notes,omitempty"`
	Tags         Optional[[]string]        `json:"tags,omitempty" example:"[\"vip\"]"`
	Metadata     Optional[json.RawMessage] `json:"metadata,omitempty" doc:"Any JSON object."`

	ID string `json:"-"` // of the contact in a row of an import, or empty
}

// Apply writes the given fields into contact and normalizes it: trimmed text, tags
// without blanks and duplicates, metadata an object.
func (ch ContactChange) Apply(contact *Contact) {
	ch.Name.Into(&contact.Name)
	ch.Email.Into(&contact.Email)
	ch.Phone.Into(&contact.Phone)
	ch.Telegram.Into(&contact.Telegram)
	ch.WhatsApp.Into(&contact.WhatsApp)
	ch.SocialHandle.Into(&contact.SocialHandle)
	ch.ExternalID.Into(&contact.ExternalID)
	ch.Notes.Into(&contact.Notes)
	ch.Tags.Into(&contact.Tags)
	ch.Metadata.Into(&contact.Metadata)
	for _, field := range []*string{
		&contact.Name, &contact.Email, &contact.Phone, &contact.Telegram, &contact.WhatsApp,
		&contact.SocialHandle, &contact.ExternalID,
	} {
		*field = strings.TrimSpace(*field)
	}
	contact.Tags = CleanTags(contact.Tags)
	contact.Metadata = defaultObject(contact.Metadata)
}

// CleanTags trims tags and drops blanks and duplicates, keeping their order. It
// never returns nil.
func CleanTags(tags []string) []string {
	clean := make([]string, 0, len(tags))
	seen := make(map[string]bool, len(tags))
	for _, tag := range tags {
		if tag = strings.TrimSpace(tag); tag != "" && !seen[tag] {
			seen[tag] = true
			clean = append(clean, tag)
		}
	}
	return clean
}

func defaultObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}

// Validate checks the fields that clients set.
func (c *Contact) Validate() error {
	var is Issues
	is.Check(c.Name != "", "name", "is required")
	is.checkText("name", c.Name, 200)
	is.checkEmail("email", c.Email, false)
	is.checkText("phone", c.Phone, 50)
	is.Check(c.Phone == "" || strings.ContainsAny(c.Phone, "0123456789"), "phone", "must contain a digit")
	is.checkText("chatbot_a", c.Telegram, 100)
	is.checkText("chatbot_b", c.WhatsApp, 100)
	is.checkText("social_handle", c.SocialHandle, 200)
	is.checkText("external_id", c.ExternalID, 200)
	is.checkText("notes", c.Notes, 20_000)
	is.Check(len(c.Tags) <= 100, "tags", "must have at most 100 entries")
	for n, tag := range c.Tags {
		is.checkText(fmt.Sprintf("tags[%d]", n), tag, 100)
	}
	is.checkObject("metadata", c.Metadata)
	return is.Err()
}

// MaxObjectBytes and MaxObjectDepth limit a free-form JSON object such as a
// contact's metadata. SQLite parses JSON nested up to 1000 levels, and the
// object is stored inside others.
const (
	MaxObjectBytes = 64 << 10
	MaxObjectDepth = 500
)

func (i *Issues) checkObject(field string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	if len(raw) > MaxObjectBytes {
		i.Add(field, fmt.Sprintf("must have at most %d bytes", MaxObjectBytes))
		return
	}
	depth, nul := scanJSON(raw)
	switch {
	case raw[0] != '{' || !json.Valid(raw):
		i.Add(field, "must be an object")
	case depth > MaxObjectDepth:
		i.Add(field, fmt.Sprintf("must be nested at most %d deep", MaxObjectDepth))
	case nul:
		i.Add(field, "must not contain NUL characters")
	}
}

// scanJSON returns how deep JSON is nested and whether a string in it contains
// a NUL character.
func scanJSON(raw []byte) (depth int, nul bool) {
	open, quoted := 0, false
	for n := 0; n < len(raw); n++ {
		switch c := raw[n]; {
		case quoted && c == '\\':
			nul = nul || bytes.HasPrefix(raw[n+1:], []byte("u0000"))
			n++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
			depth = max(depth, open)
		case c == '}' || c == ']':
			open--
		}
	}
	return depth, nul
}

// ContactIdentifiers are the fields by which a contact can be resolved, under
// their API names. No two contacts of an agent share a value.
var ContactIdentifiers = []string{"email", "phone", "chatbot_a", "chatbot_b", "external_id"}

// Identifier returns the value of one of ContactIdentifiers.
func (c *Contact) Identifier(field string) string {
	switch field {
	case "email":
		return c.Email
	case "phone":
		return c.Phone
	case "chatbot_a":
		return c.Telegram
	case "chatbot_b":
		return c.WhatsApp
	case "external_id":
		return c.ExternalID
	}
	return ""
}

// Forget clears one of ContactIdentifiers.
func (c *Contact) Forget(field string) {
	switch field {
	case "email":
		c.Email = ""
	case "phone":
		c.Phone = ""
	case "chatbot_a":
		c.Telegram = ""
	case "chatbot_b":
		c.WhatsApp = ""
	case "external_id":
		c.ExternalID = ""
	}
}
