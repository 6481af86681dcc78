package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/llm"
)

// Limits of the history that a model receives.
const (
	maxHistory    = 200    // messages
	historyTokens = 16_000 // as estimated by tokens
)

// tokens estimates the number of tokens in a text: four bytes per token for
// Latin scripts, one character per token for most others.
func tokens(text string) int {
	characters := utf8.RuneCountInString(text)
	return max(characters-(len(text)-characters), 0)/4 + (len(text)-characters)/2 + 4
}

// newestWithin returns the newest part of a conversation, oldest first, that fits
// into the budget; the last message is always included.
func newestWithin(history []agent.Message, budget int) []llm.Message {
	history = visibleHistory(history)
	from := len(history)
	for from > 0 {
		budget -= tokens(history[from-1].Content)
		if budget < 0 && from < len(history) {
			break
		}
		from--
	}
	var kept []llm.Message
	for _, m := range history[from:] {
		switch m.Role {
		case agent.MessageTool: // inserted by SQL: it belongs to no call of the model
			kept = append(kept, llm.Message{Role: agent.MessageUser, Content: "Result of a tool:\n" + m.Content})
		case agent.MessageAssistant:
			kept = append(kept, llm.Message{Role: m.Role, Content: llm.WithoutThought(m.Content)})
		default:
			kept = append(kept, llm.Message{Role: m.Role, Content: m.Content})
		}
	}
	return kept
}

// visibleHistory returns a conversation as a model sees it: of several answers to
// one message only the newest, in the place of the first, and without notes and
// answers that consist of passages.
func visibleHistory(history []agent.Message) []agent.Message {
	var visible []agent.Message
	place := map[int64]int{} // index in visible, by id
	for _, m := range history {
		of := readAnswerMetadata(m).RetryOf
		at, again := place[of]
		if !again || of == 0 {
			at, visible = len(visible), append(visible, m)
		}
		visible[at], place[m.ID] = m, at
	}
	return slices.DeleteFunc(visible, func(m agent.Message) bool {
		return m.Role == agent.MessageNote || readAnswerMetadata(m).Mode == ModePassages
	})
}

// readAnswerMetadata reads the metadata that determines an answer's place in its
// conversation.
func readAnswerMetadata(m agent.Message) (about struct {
	RetryOf int64 `json:"retry_of"`
	Mode    Mode  `json:"mode"`
}) {
	rare := bytes.Contains(m.Metadata, []byte(`"retry_of"`)) || bytes.Contains(m.Metadata, []byte(`"mode"`))
	if m.Role == agent.MessageAssistant && rare {
		_ = json.Unmarshal(m.Metadata, &about) // anything else was written by SQL
	}
	return about
}
