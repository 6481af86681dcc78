package gateways

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"satchel/agent"
)

// badSignature is the error of a post whose signature is missing, wrong or old.
func badSignature() error {
	return agent.Errorf(agent.CodeUnauthorized, "the signature is missing, wrong or too old")
}

// malformed is the error of a post that is signed but cannot be parsed.
func malformed(platform string, err error) error {
	return agent.Invalid("body", "is no post of "+platform).Because(err)
}

// Attachment is what is kept of a file that came with a message: not the file
// itself, but how the platform gives it out.
type Attachment struct {
	Type     string `json:"type,omitempty"` // what it is to the platform, such as voice
	ID       string `json:"id,omitempty"`
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mime_type,omitempty"`
	Size     int64  `json:"size,omitempty"` // in bytes
	URL      string `json:"url,omitempty"`
}

// maxAttachments bounds the files that are kept of one message.
const maxAttachments = 50

// metadata is what is kept on an inbound message: facts that are set, and its
// attachments.
func metadata(facts map[string]string, attachments []Attachment) json.RawMessage {
	kept := map[string]any{}
	for name, value := range facts {
		if value != "" {
			kept[name] = agent.Clip(value, 2000)
		}
	}
	if len(attachments) > 0 {
		kept["attachments"] = attachments[:min(len(attachments), maxAttachments)]
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return raw
}

// withoutKeys returns a JSON object without some of its keys, which hold
// credentials; nil when it is none.
func withoutKeys(body []byte, keys ...string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil {
		return nil
	}
	for _, key := range keys {
		delete(object, key)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return raw
}

// errorWord returns a platform's error code when it is a single word, which is
// safe to show; else "".
func errorWord(text string) string {
	if len(text) > 60 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return text
}

// bodyHash is the id of a post that has none of its own.
func bodyHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
