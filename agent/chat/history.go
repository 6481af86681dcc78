package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/llm"
)

// Bounds of the history that a model gets.
const (
	maxHistory    = 200    // messages
	historyTokens = 16_000 // as tokens estimates them
)

// tokens estimates how many tokens a text is: four bytes of a Latin script
// make one on average, and a character of most others makes one by itself.
func tokens(text string) int {
	characters := utf8.RuneCountInString(text)
	return max(characters-(len(text)-characters), 0)/4 + (len(text)-characters)/2 + 4
}

// within is the newest part of a conversation, oldest first, that fits into
// the budget; the last message always does. It begins with what a person said:
// providers refuse an answer to nothing.
func within(history []agent.Message, budget int) []llm.Message {
	history = spoken(history)
	from := len(history)
	for from > 0 {
		budget -= tokens(history[from-1].Content)
		if budget < 0 && from < len(history) {
			break
		}
		from--
	}
	for from < len(history)-1 && history[from].Role == agent.MessageAssistant {
		from++
	}
	var kept []llm.Message
	for _, m := range history[from:] {
		switch m.Role {
		case agent.MessageTool: // put there by hand: no call of the model's goes with it
			kept = append(kept, llm.Message{Role: agent.MessageUser, Content: "Result of a tool:\n" + m.Content})
		default:
			kept = append(kept, llm.Message{Role: m.Role, Content: m.Content})
		}
	}
	return kept
}

// spoken is a conversation as a model gets it: of several answers to one
// message the newest, where the first one stood, and without notes and what
// stood in for an answer.
func spoken(history []agent.Message) []agent.Message {
	var said []agent.Message
	place := map[int64]int{} // in said, by id
	for _, m := range history {
		of := aboutAnswer(m).RetryOf
		at, again := place[of]
		if !again || of == 0 {
			at, said = len(said), append(said, m)
		}
		said[at], place[m.ID] = m, at
	}
	return slices.DeleteFunc(said, func(m agent.Message) bool {
		return m.Role == agent.MessageNote || aboutAnswer(m).Mode == ModePassages
	})
}

// aboutAnswer reads of an answer's metadata what places it in its conversation.
func aboutAnswer(m agent.Message) (about struct {
	RetryOf int64 `json:"retry_of"`
	Mode    Mode  `json:"mode"`
}) {
	rare := bytes.Contains(m.Metadata, []byte(`"retry_of"`)) || bytes.Contains(m.Metadata, []byte(`"mode"`))
	if m.Role == agent.MessageAssistant && rare {
		_ = json.Unmarshal(m.Metadata, &about) // what is otherwise was put there by hand
	}
	return about
}
