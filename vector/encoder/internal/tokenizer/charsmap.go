package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled character map: a double-array trie
// (Darts-clone) from texts to offsets in a list of zero-terminated texts.
type charsmap struct {
	units []uint32
	texts []byte
}

// precompiled reads a normalizer with a precompiled character map.
func precompiled(part json.RawMessage) (func(string) string, error) {
	var s struct {
		Type string
		Map  string `json:"precompiled_charsmap"`
	}
	if err := strict(part, &s); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(s.Map)
	if err != nil {
		return nil, errors.New("the precompiled map is not base64")
	}
	if len(data) == 0 {
		return func(text string) string { return text }, nil
	}
	m, err := parseCharsmap(data)
	if err != nil {
		return nil, err
	}
	return m.normalize, nil
}

func parseCharsmap(data []byte) (*charsmap, error) {
	if len(data) < 4 {
		return nil, errors.New("the precompiled map is cut off")
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) || size%4 != 0 || size == 0 {
		return nil, errors.New("the precompiled map is cut off")
	}
	m := &charsmap{units: make([]uint32, size/4), texts: bytes.Clone(data[size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return m, nil
}

// normalize replaces the longest matching text of the map at each position. The result
// grows to at most about MaxText.
func (m *charsmap) normalize(text string) string {
	var b strings.Builder
	for text != "" && b.Len() <= MaxText {
		n, by := m.longest(text)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text)
			b.WriteString(text[:n])
		} else {
			b.Write(by)
		}
		text = text[n:]
	}
	return b.String()
}

// longest returns the length of the longest text of the map at the beginning of text,
// and its replacement; 0 if there is none.
func (m *charsmap) longest(text string) (count int, by []byte) {
	at := offsetOf(m.units[0])
	for index := 0; index < len(text); index++ {
		at ^= uint32(text[index])
		if int64(at) >= int64(len(m.units)) {
			return count, by
		}
		unit := m.units[at]
		if unit&(1<<31|0xff) != uint32(text[index]) {
			return count, by
		}
		at ^= offsetOf(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if int64(at) >= int64(len(m.units)) {
			return count, by
		}
		if replaced, ok := m.text(m.units[at] &^ (1 << 31)); ok {
			count, by = index+1, replaced
		}
	}
	return count, by
}

// offsetOf returns the distance from a unit to its children.
func offsetOf(unit uint32) uint32 {
	return unit >> 10 << (unit & (1 << 9) >> 6)
}

// text returns the text at an offset.
func (m *charsmap) text(at uint32) ([]byte, bool) {
	if int64(at) >= int64(len(m.texts)) {
		return nil, false
	}
	end := bytes.IndexByte(m.texts[at:], 0)
	if end < 0 {
		return nil, false
	}
	return m.texts[at:][:end], true
}
