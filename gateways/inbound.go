package gateways

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"satchel/agent"
)

// badSignature returns the error for a post whose signature is missing, invalid
// or expired.
func badSignature() error {
	return agent.Errorf(agent.CodeUnauthorized, "the signature is missing, invalid, or expired")
}

// malformed returns the error for an authentic post that cannot be parsed.
func malformed(platform string, err error) error {
	return agent.Invalid("body", "is not a valid post from "+platform).Because(err)
}

// metadata returns the metadata of an inbound message: the facts that are not
// empty.
func metadata(facts map[string]string) json.RawMessage {
	kept := map[string]any{}
	for name, value := range facts {
		if value != "" {
			kept[name] = agent.Clip(value, 2000)
		}
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return raw
}

// withoutKeys returns a JSON object without some of its keys, which hold
// credentials, or nil if body is not an object.
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

// errorCode returns a platform's error code if it is a single word, which is
// safe to show, or "".
func errorCode(text string) string {
	if len(text) > 60 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return text
}

// bodyHash returns the id of a post that does not have its own.
func bodyHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
