package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/httpapi/rest"
	"satchel/store"
)

// The Responses API of OpenAI, as Open Responses describes it
// (https://www.openresponses.org). The caller runs the tools of a request.

// response is a response object. Every field is present; it is null if it is empty.
type response struct {
	ID                string              `json:"id" example:"resp_06f1q2s3t4v5a6b7c8d9"`
	Object            string              `json:"object" example:"response"`
	CreatedAt         int64               `json:"created_at" example:"1767225600"`
	CompletedAt       *int64              `json:"completed_at" nullable:"true"`
	Status            string              `json:"status" enum:"in_progress,completed,incomplete,failed" example:"completed"`
	Error             *responseError      `json:"error" types:"null"`
	IncompleteDetails *responseIncomplete `json:"incomplete_details" types:"null"`
	Instructions      *string             `json:"instructions" nullable:"true"`
	Model             string              `json:"model" example:"support"`
	Output            []responseItem      `json:"output"`
	PreviousID        *string             `json:"previous_response_id" nullable:"true"`
	Tools             []responseTool      `json:"tools"`
	ToolChoice        json.RawMessage     `json:"tool_choice" types:"string,object"`
	Text              responseText        `json:"text"`
	Temperature       float64             `json:"temperature" example:"1"`
	MaxOutputTokens   *int                `json:"max_output_tokens" nullable:"true"`
	Usage             *responseUsage      `json:"usage" types:"null"`
	Store             bool                `json:"store"`

	PendingSources []agent.PendingSource `json:"pending_sources,omitempty" doc:"Not in OpenAI's API: sources that were still being read, so that the answer may lack what they say."`

	Metadata map[string]string `json:"metadata"`

	// Fields that are the same in every response, because the parameters that
	// they reflect are ignored.
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
	Truncation        string            `json:"truncation" example:"disabled"`
	TopP              float64           `json:"top_p"`
	PresencePenalty   float64           `json:"presence_penalty"`
	FrequencyPenalty  float64           `json:"frequency_penalty"`
	TopLogprobs       int               `json:"top_logprobs"`
	Reasoning         responseReasoning `json:"reasoning"`
	MaxToolCalls      *int              `json:"max_tool_calls" nullable:"true"`
	Background        bool              `json:"background"`
	ServiceTier       string            `json:"service_tier" example:"default"`
	SafetyIdentifier  *string           `json:"safety_identifier" nullable:"true"`
	PromptCacheKey    *string           `json:"prompt_cache_key" nullable:"true"`
	User              *string           `json:"user" nullable:"true"`
}

type responseReasoning struct {
	Effort  *string `json:"effort" nullable:"true"`
	Summary *string `json:"summary" nullable:"true"`
}

type responseError struct {
	Code    string `json:"code" example:"UPSTREAM_ERROR"`
	Message string `json:"message"`
}

type responseIncomplete struct {
	Reason string `json:"reason" example:"max_output_tokens"`
}

type responseUsage struct {
	InputTokens  int64 `json:"input_tokens"`
	InputDetails struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int64 `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

// responseItem is a message or a function call.
type responseItem struct {
	Type      string         `json:"type" enum:"message,function_call" example:"message"`
	ID        string         `json:"id" example:"msg_06f1q2s3t4v5a6b7c8d9"`
	Status    string         `json:"status" enum:"in_progress,completed,incomplete" example:"completed"`
	Role      string         `json:"role,omitempty" example:"assistant"`
	Content   []responsePart `json:"content,omitzero" doc:"Of a message."`
	CallID    string         `json:"call_id,omitempty" doc:"Of a call: its id, which function_call_output refers to."`
	Name      string         `json:"name,omitempty"`
	Arguments *string        `json:"arguments,omitempty"`
}

type responsePart struct {
	Type        string             `json:"type" example:"output_text"`
	Text        string             `json:"text" example:"Bring it back within two days."`
	Annotations []responseCitation `json:"annotations"`
	Logprobs    []json.RawMessage  `json:"logprobs"`
}

// responseCitation is a place, in characters, where a text cites a passage of the
// knowledge.
type responseCitation struct {
	Type       string `json:"type" example:"url_citation"`
	StartIndex int    `json:"start_index"`
	EndIndex   int    `json:"end_index"`
	URL        string `json:"url"`
	Title      string `json:"title"`
}

const (
	responsePrefix = "resp_"
	messagePrefix  = "msg_"
	callPrefix     = "fc_"
)

// createResponse handles a request of the Responses API.
func (s *Server) createResponse(call *rest.Call) error {
	in, err := rest.Bind[responseIn](call)
	if err != nil {
		return err
	}
	request, input, err := s.chatRequest(call, &in)
	if err != nil {
		return err
	}
	if err := s.extendTimeLimits(call); err != nil {
		return err
	}
	out := in.response(call.DB.Agent().Name)
	if in.Body.Stream {
		return s.streamResponse(call, &in, request, input, out)
	}
	answer, err := s.chat.Complete(call, call.DB, request, nil)
	if err != nil {
		return err
	}
	s.finishResponse(call, &out, answer)
	if err := s.keepResponse(call, &in, input, out); err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, out)
}

// response returns a new response that is in progress.
func (in *responseIn) response(model string) response {
	body := in.Body
	out := response{
		ID:                responsePrefix + token(),
		Object:            "response",
		CreatedAt:         time.Now().Unix(),
		Status:            "in_progress",
		Model:             cmp.Or(body.Model, model),
		Output:            []responseItem{},
		Instructions:      body.Instructions,
		Tools:             body.Tools,
		ToolChoice:        body.ToolChoice,
		Text:              body.Text,
		Temperature:       1,
		MaxOutputTokens:   body.MaxOutputTokens,
		Store:             in.stores(),
		Metadata:          body.Metadata,
		ParallelToolCalls: true,
		Truncation:        "disabled",
		TopP:              1,
		ServiceTier:       "default",
	}
	if body.PreviousID != "" {
		out.PreviousID = &body.PreviousID
	}
	if body.Temperature != nil {
		out.Temperature = *body.Temperature
	}
	if out.Tools == nil {
		out.Tools = []responseTool{}
	}
	if len(out.ToolChoice) == 0 || string(out.ToolChoice) == "null" {
		out.ToolChoice = json.RawMessage(`"auto"`)
	}
	if out.Metadata == nil {
		out.Metadata = map[string]string{}
	}
	if len(out.Text.Format) == 0 || string(out.Text.Format) == "null" {
		out.Text.Format = json.RawMessage(`{"type":"text"}`)
	}
	return out
}

// token returns the part of a new id after its prefix.
func token() string {
	_, token, _ := strings.Cut(agent.NewID("resp"), "-")
	return token
}

// finishResponse completes a response with the agent's answer. The ids of its items are
// derived from its own, so that an item's id identifies its response.
func (s *Server) finishResponse(c *rest.Call, out *response, answer agentchat.Answer) {
	now := time.Now().Unix()
	out.Status, out.CompletedAt = "completed", &now
	if answer.Truncated {
		out.Status, out.IncompleteDetails = "incomplete", &responseIncomplete{"max_output_tokens"}
	}
	usage := &responseUsage{
		InputTokens:  answer.Usage.Input,
		OutputTokens: answer.Usage.Output,
		TotalTokens:  answer.Usage.Input + answer.Usage.Output,
	}
	out.Usage, out.PendingSources = usage, answer.Pending
	if answer.Text != "" || len(answer.ClientCalls) == 0 {
		item := messageItem(out.ID, out.Status)
		item.Content = []responsePart{{
			Type:        "output_text",
			Text:        answer.Text,
			Annotations: s.citationsOf(c, answer),
			Logprobs:    []json.RawMessage{},
		}}
		out.Output = append(out.Output, item)
	}
	for i, call := range answer.ClientCalls {
		out.Output = append(out.Output, callItem(out.ID, i, call))
	}
}

func messageItem(id, status string) responseItem {
	return responseItem{
		Type:    "message",
		ID:      messagePrefix + strings.TrimPrefix(id, responsePrefix),
		Status:  status,
		Role:    "assistant",
		Content: []responsePart{},
	}
}

func callItem(id string, i int, call llm.ToolCall) responseItem {
	return responseItem{
		Type:      "function_call",
		ID:        fmt.Sprintf("%s%s_%d", callPrefix, strings.TrimPrefix(id, responsePrefix), i),
		Status:    "completed",
		CallID:    call.ID,
		Name:      call.Name,
		Arguments: &call.Arguments,
	}
}

var citedNumber = regexp.MustCompile(`\[(\d{1,3})\]`)

// citationsOf returns the citations of passages in a text. A source without a
// URL is cited by its page in the console.
func (s *Server) citationsOf(call *rest.Call, answer agentchat.Answer) []responseCitation {
	list := []responseCitation{}
	for _, at := range citedNumber.FindAllStringSubmatchIndex(answer.Text, -1) {
		number, _ := strconv.Atoi(answer.Text[at[2]:at[3]])
		for _, source := range answer.Sources {
			if source.Number != number {
				continue
			}
			from := source.Metadata
			address := cmp.Or(from.URL, s.options.PublicURL+"/#/agents/"+call.DB.ID()+"/knowledge/"+source.SourceID)
			start := utf8.RuneCountInString(answer.Text[:at[0]])
			list = append(list, responseCitation{
				Type:       "url_citation",
				StartIndex: start,
				EndIndex:   start + at[1] - at[0],
				URL:        address,
				Title:      cmp.Or(from.SourceName, address),
			})
		}
	}
	return list
}

// keepResponse stores a response unless the caller asked not to.
func (s *Server) keepResponse(call *rest.Call, in *responseIn, input []json.RawMessage, out response) error {
	if !in.stores() {
		return nil
	}
	items, err := json.Marshal(input)
	if err != nil {
		return err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return call.DB.PutResponse(context.WithoutCancel(call), store.Response{
		ID:       out.ID,
		Previous: in.Body.PreviousID,
		Input:    items,
		Body:     body,
	})
}

type responseIDIn struct {
	ID string `path:"responseId" doc:"Id of the response." example:"resp_06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getResponse(c *rest.Call) error {
	in, err := rest.Bind[responseIDIn](c)
	if err != nil {
		return err
	}
	kept, err := c.DB.Response(c, in.ID)
	if err != nil {
		return err
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, kept.Body)
}

type deletedResponse struct {
	ID      string `json:"id" example:"resp_06f1q2s3t4v5a6b7c8d9"`
	Object  string `json:"object" example:"response"`
	Deleted bool   `json:"deleted"`
}

func (s *Server) deleteResponse(c *rest.Call) error {
	in, err := rest.Bind[responseIDIn](c)
	if err != nil {
		return err
	}
	if err := c.DB.DeleteResponse(c, in.ID); err != nil {
		return err
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, deletedResponse{in.ID, "response", true})
}
