package chat

import (
	"context"
	"encoding/json"
	"strings"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

// Limits of the data stored with an answer, in bytes.
const (
	maxMetadata     = 1 << 20 // total
	maxStoredResult = 8 << 10 // of a tool's result, and of its arguments
)

// answerMetadata is stored with an answer as its message's metadata.
type answerMetadata struct {
	InReplyTo int64       `json:"in_reply_to,omitempty"`
	RetryOf   int64       `json:"retry_of,omitempty"` // the answer to which this is an alternative
	Key       string      `json:"key,omitempty"`      // of the step that it answers
	Mode      Mode        `json:"mode,omitempty"`
	Model     string      `json:"model"`
	Usage     llm.Usage   `json:"usage"`
	ToolCalls []ToolCall  `json:"tool_calls,omitempty"`
	Sources   []reference `json:"sources,omitempty"`
	Queries   []string    `json:"queries,omitempty"`
	Partial   bool        `json:"partial,omitempty"`

	Pending []agent.PendingSource `json:"pending_sources,omitempty"`
}

// metadata returns k with the contents of an answer as JSON. If it is longer
// than limit bytes, the text of passages is dropped, then the calls of tools.
func (k answerMetadata) metadata(answer Answer, limit int) (json.RawMessage, error) {
	k.Mode, k.Model, k.Usage, k.ToolCalls, k.Sources, k.Queries =
		answer.Mode, answer.Model, answer.Usage, shortenArguments(answer.ToolCalls),
		references(answer.Sources, answer.Text), answer.Queries
	k.Pending = answer.Pending
	raw, err := json.Marshal(k)
	if err == nil && len(raw) > limit {
		for i := range k.Sources {
			k.Sources[i].Content = ""
		}
		raw, err = json.Marshal(k)
	}
	if err == nil && len(raw) > limit {
		k.ToolCalls = nil
		raw, err = json.Marshal(k)
	}
	return raw, err
}

// storeAnswer stores an answer with its metadata, even if the caller is gone.
func (c *Chat) storeAnswer(
	ctx context.Context,
	db *store.DB,
	conversationID string,
	k answerMetadata,
	a Answer,
) (agent.Message, error) {
	raw, err := k.metadata(a, maxMetadata)
	if err != nil {
		return agent.Message{}, err
	}
	reply := agent.Message{
		ConversationID: conversationID,
		Role:           agent.MessageAssistant,
		Content:        a.Text,
		Metadata:       raw,
	}
	return db.AppendReply(context.WithoutCancel(ctx), reply)
}

// storedAnswer returns the answer stored as a message. Missing or modified metadata
// is ignored as far as necessary.
func storedAnswer(message *agent.Message, asJSON bool) Answer {
	if message == nil {
		return Answer{}
	}
	var meta answerMetadata
	_ = json.Unmarshal(message.Metadata, &meta)
	answer := Answer{
		Text:      message.Content,
		Mode:      meta.Mode,
		Model:     meta.Model,
		Usage:     meta.Usage,
		ToolCalls: append([]ToolCall{}, meta.ToolCalls...),
		Sources:   []Citation{},
		Queries:   meta.Queries,
		Pending:   meta.Pending,
	}
	for _, r := range meta.Sources {
		answer.Sources = append(answer.Sources, r.citation())
	}
	if asJSON {
		answer.JSON = jsonIn(answer.Text)
	}
	return answer
}

// shortenArguments returns calls with arguments short enough to be stored.
func shortenArguments(calls []ToolCall) []ToolCall {
	list := make([]ToolCall, len(calls))
	for i, c := range calls {
		if len(c.Arguments) > maxStoredResult {
			// a string can always be encoded
			c.Arguments, _ = json.Marshal(clipBytes(string(c.Arguments), maxStoredResult))
		}
		list[i] = c
	}
	return list
}

// clipJSON cuts a long result to the beginning of its text.
func clipJSON(raw json.RawMessage, limit int) any {
	if len(raw) <= limit {
		return raw
	}
	return clipBytes(string(raw), limit)
}

// clipBytes shortens s to at most n bytes, marking the cut with an ellipsis.
func clipBytes(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

// reference is a citation as stored with the answer.
type reference struct {
	Number     int      `json:"n"`
	SourceID   string   `json:"source_id"`
	SourceName string   `json:"source_name"`
	ChunkID    string   `json:"chunk_id"`
	Page       int      `json:"page"`
	LastPage   int      `json:"last_page,omitempty"`
	Section    string   `json:"section"`
	URL        string   `json:"url"`
	Line       int      `json:"line,omitempty"`
	LastLine   int      `json:"last_line,omitempty"`
	Place      string   `json:"place,omitempty"`
	Sections   []string `json:"sections,omitempty"`
	Score      float64  `json:"score"`
	Content    string   `json:"content"`
	Matches    [][]int  `json:"matches,omitempty"`
	Best       []int    `json:"best_sentence,omitempty"`
	Cited      bool     `json:"cited"` // the answer cites its number
}

// maxStoredPassage is how many bytes of a passage are stored with the answer.
const maxStoredPassage = 4 << 10

func references(list []Citation, text string) []reference {
	cited := numbersIn(text)
	kept := make([]reference, len(list))
	for index, citation := range list {
		from := citation.Metadata
		kept[index] = reference{
			Number:     citation.Number,
			SourceID:   citation.SourceID,
			SourceName: from.SourceName,
			ChunkID:    citation.ID,
			Page:       from.Page,
			LastPage:   from.LastPage,
			Section:    from.Section,
			URL:        from.URL,
			Line:       from.Line,
			LastLine:   from.LastLine,
			Place:      from.Place,
			Sections:   from.Sections,
			Score:      citation.Score,
			Content:    clipBytes(citation.Content, maxStoredPassage),
			Cited:      cited[citation.Number],
			Matches:    citation.Matches,
			Best:       citation.BestSentence,
		}
	}
	return kept
}

func (r reference) citation() Citation {
	from := agent.ChunkMetadata{
		SourceName: r.SourceName,
		Page:       r.Page,
		LastPage:   max(r.Page, r.LastPage),
		Section:    r.Section,
		URL:        r.URL,
		Line:       r.Line,
		LastLine:   r.LastLine,
		Place:      r.Place,
		Sections:   append([]string{}, r.Sections...),
	}
	return Citation{Number: r.Number, Result: vector.Result{
		ID:           r.ChunkID,
		SourceID:     r.SourceID,
		Content:      r.Content,
		Score:        r.Score,
		Matches:      append([][]int{}, r.Matches...),
		BestSentence: r.Best,
		Metadata:     vector.ResultMetadata{ChunkMetadata: from},
	}}
}
