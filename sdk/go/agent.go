package satchel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// AgentInfo is an agent as the server describes it.
type AgentInfo struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Status      string    `json:"status"` // active, paused or disabled
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// Source is a document, site, page or feed that an agent knows.
type Source struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Status string `json:"status"` // processing, crawling, updating, ready or error
	Chunks int    `json:"chunks"`
	Error  *Error `json:"error"`
}

// Citation is a passage that an answer is based on; Number is what the text has
// in brackets.
type Citation struct {
	Number   int     `json:"number"`
	SourceID string  `json:"source_id"`
	Content  string  `json:"content"`
	Score    float64 `json:"score"`
	Metadata struct {
		SourceName string `json:"source_name"`
		Section    string `json:"section"`
		Page       int    `json:"page"`
		URL        string `json:"url"`
		Place      string `json:"place"` // such as "page 4 · Returns"
	} `json:"metadata"`
}

// Answer is a complete answer of an agent.
type Answer struct {
	ConversationID string `json:"conversation_id"`
	Message        struct {
		ID      int64  `json:"id"`
		Content string `json:"content"`
	} `json:"message"`
	Mode    string     `json:"mode"` // "passages" when there is no language model
	Sources []Citation `json:"sources"`
}

// Execution is one execution of a workflow.
type Execution struct {
	ID     string         `json:"id"`
	Status string         `json:"status"` // queued, running, complete, errored or terminated
	Output map[string]any `json:"output"`
	Error  *Error         `json:"error"`
}

// Agent is an agent, by id or name.
type Agent struct {
	client *Client
	path   string
}

// Agent returns the agent with an id or name, without a request.
func (c *Client) Agent(idOrName string) *Agent {
	return &Agent{client: c, path: "/agents/" + url.PathEscape(idOrName)}
}

// CreateAgent creates an agent.
func (c *Client) CreateAgent(ctx context.Context, name, description string) (AgentInfo, error) {
	var made AgentInfo
	err := c.Call(
		ctx, http.MethodPost, "/agents", nil,
		map[string]any{"name": name, "description": description},
		&made,
	)
	return made, err
}

// Call is Client.Call for a route of the agent, such as "/contacts".
func (a *Agent) Call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	return a.client.Call(ctx, method, a.path+path, query, body, out)
}

// Upload uploads a document and waits until it is read, at most wait, which is at
// most five minutes.
func (a *Agent) Upload(ctx context.Context, name string, content []byte, wait time.Duration) (Source, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err = errors.Join(
		err,
		form.WriteField("type", "file"),
		form.WriteField("name", name),
		form.Close(),
	); err != nil {
		return Source{}, err
	}
	query := url.Values{"wait": {strconv.Itoa(int(wait.Seconds()))}}
	resp, err := a.client.send(ctx, request{
		method: http.MethodPost,
		path:   a.path + "/sources",
		query:  query,
		body:   body.Bytes(),
		media:  form.FormDataContentType(),
	})
	if err != nil {
		return Source{}, err
	}
	defer resp.Body.Close()
	var source Source
	if err := json.NewDecoder(resp.Body).Decode(&source); err != nil {
		return source, err
	}
	if source.Status == "error" && source.Error != nil {
		return source, source.Error
	}
	return source, nil
}

// AskOptions are optional parts of a question.
type AskOptions struct {
	ConversationID string // continues a conversation
	Fallback       string // "passages": without a language model, answer with what was found
	Model          string
}

// AnswerEvent is what happens while an answer is made. Exactly one field is set.
type AnswerEvent struct {
	Delta   string          // text that follows what was said so far
	Sources []Citation      // what the answer may cite
	Tool    json.RawMessage // a call of a tool, or its result
	Answer  *Answer         // the complete answer, last
}

// Ask asks and returns the complete answer.
func (a *Agent) Ask(ctx context.Context, message string, o AskOptions) (*Answer, error) {
	var answer *Answer
	for event, err := range a.Stream(ctx, message, o) {
		if err != nil {
			return nil, err
		}
		answer = event.Answer
	}
	return answer, nil
}

// Stream asks and yields the answer as it comes. An error is the last.
func (a *Agent) Stream(ctx context.Context, message string, o AskOptions) iter.Seq2[AnswerEvent, error] {
	body := map[string]any{"message": message, "stream": true}
	for name, value := range map[string]string{
		"conversation_id": o.ConversationID,
		"fallback":        o.Fallback,
		"model":           o.Model,
	} {
		if value != "" {
			body[name] = value
		}
	}
	return func(yield func(AnswerEvent, error) bool) {
		done := false
		err := a.events(ctx, http.MethodPost, "/chat", body, func(name string, data []byte) (bool, error) {
			event, err := answerEvent(name, data)
			if err != nil {
				return true, err
			}
			done = !yield(event, nil) || event.Answer != nil
			return done, nil
		})
		if err == nil && !done {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			yield(AnswerEvent{}, err)
		}
	}
}

func answerEvent(name string, data []byte) (event AnswerEvent, err error) {
	switch name {
	case "error":
		return event, failureOf(http.StatusOK, data)
	case "done":
		event.Answer = &Answer{}
		return event, json.Unmarshal(data, event.Answer)
	case "delta", "sources":
		var part struct {
			Text    string     `json:"text"`
			Sources []Citation `json:"sources"`
		}
		err = json.Unmarshal(data, &part)
		return AnswerEvent{Delta: part.Text, Sources: part.Sources}, err
	}
	return AnswerEvent{Tool: bytes.Clone(data)}, nil
}

// ExecutionError reports that a workflow did not complete.
type ExecutionError struct{ Execution Execution }

// Error returns how the execution ended, and why.
func (e *ExecutionError) Error() string {
	text := fmt.Sprintf("execution %s: %s", e.Execution.ID, e.Execution.Status)
	if e.Execution.Error != nil {
		text += ": " + e.Execution.Error.Message
	}
	return text
}

// Run executes a workflow and waits for its end. One that fails is an
// *ExecutionError.
func (a *Agent) Run(ctx context.Context, workflowID string, input map[string]any) (Execution, error) {
	if input == nil {
		input = map[string]any{}
	}
	var started Execution
	if err := a.Call(
		ctx, http.MethodPost, "/workflows/execute", nil,
		map[string]any{"workflow_id": workflowID, "input": input},
		&started,
	); err != nil {
		return started, err
	}
	return a.Wait(ctx, started.ID)
}

// Wait waits for the end of an execution, even if the server restarts in between.
func (a *Agent) Wait(ctx context.Context, executionID string) (Execution, error) {
	path := "/workflows/executions/" + url.PathEscape(executionID)
	for {
		ended := false
		err := a.events(ctx, http.MethodGet, path+"/events", nil, func(name string, _ []byte) (bool, error) {
			ended = strings.HasPrefix(name, "execution.")
			return ended, nil
		})
		var answered *Error
		if ctx.Err() != nil || errors.As(err, &answered) {
			return Execution{}, err
		}
		if !ended { // the stream was cut
			if err := a.client.sleep(ctx, time.Second); err != nil {
				return Execution{}, err
			}
		}
		var x Execution
		if err := a.Call(ctx, http.MethodGet, path, nil, nil, &x); err != nil {
			return x, err
		}
		switch x.Status {
		case "complete":
			return x, nil
		case "errored", "terminated":
			return x, &ExecutionError{x}
		}
	}
}

// Session is a browser session.
type Session struct {
	agent *Agent
	ID    string `json:"id"`
}

// Browse opens a browser session. Close it. options may be nil.
func (a *Agent) Browse(ctx context.Context, options map[string]any) (*Session, error) {
	if options == nil {
		options = map[string]any{}
	}
	s := &Session{agent: a}
	return s, a.Call(ctx, http.MethodPost, "/browser", nil, options, s)
}

// Execute executes actions in their order, such as {"action": "navigate", "url":
// "https://example.com"}, and returns a result of each.
func (s *Session) Execute(ctx context.Context, actions ...map[string]any) ([]map[string]any, error) {
	var out struct {
		Results []map[string]any `json:"results"`
	}
	err := s.agent.Call(
		ctx,
		http.MethodPost,
		"/browser/"+url.PathEscape(s.ID)+"/execute",
		nil,
		map[string]any{"actions": actions},
		&out,
	)
	return out.Results, err
}

// Close closes the session.
func (s *Session) Close(ctx context.Context) error {
	return s.agent.Call(
		ctx,
		http.MethodDelete,
		"/browser",
		url.Values{"id": {s.ID}},
		nil,
		nil,
	)
}
