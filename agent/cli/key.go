package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Key is a master key. Printing, logging and encoding it shows a mask; its
// bytes are key[:].
type Key [32]byte

// Format writes the mask for every verb.
func (Key) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, mask)
}

// MarshalText returns the mask, for JSON and slog.
func (Key) MarshalText() ([]byte, error) {
	return []byte(mask), nil
}

// maxKeys limits how many keys are tried when decrypting an old secret.
const maxKeys = 16

var encodings = []*base64.Encoding{
	base64.StdEncoding.Strict(), base64.RawStdEncoding.Strict(),
	base64.URLEncoding.Strict(), base64.RawURLEncoding.Strict(),
}

// parseKeys parses comma-separated base64 keys, with or without padding, in
// either alphabet. Its errors count the keys and never contain one.
func parseKeys(text string) ([]Key, error) {
	var keys []Key
	for part := range strings.SplitSeq(text, ",") {
		if len(keys) == maxKeys {
			return nil, fmt.Errorf("has more than %d keys", maxKeys)
		}
		key, err := parseKey(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("key %d %w", len(keys)+1, err)
		}
		for i, other := range keys {
			if other == key {
				return nil, fmt.Errorf("key %d repeats key %d", len(keys)+1, i+1)
			}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func parseKey(text string) (Key, error) {
	if text == "" {
		return Key{}, errors.New("is empty")
	}
	for _, encoding := range encodings {
		bytes, err := encoding.DecodeString(text)
		if err != nil {
			continue
		}
		if len(bytes) != len(Key{}) {
			return Key{}, fmt.Errorf("has %d bytes, want %d", len(bytes), len(Key{}))
		}
		return Key(bytes), nil
	}
	return Key{}, errors.New("is not base64")
}
