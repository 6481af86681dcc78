package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// citation is a passage that an answer is based on.
type citation struct {
	Number   int    `json:"number"`
	Content  string `json:"content"`
	Metadata struct {
		Source string `json:"source_name"`
		Place  string `json:"place"`
		URL    string `json:"url"`
	} `json:"metadata"`
	Score float64 `json:"score"`
}

// place returns where the passage is.
func (c *citation) place() string {
	text := c.Metadata.Source
	if c.Metadata.Place != "" {
		text += ", " + c.Metadata.Place
	}
	if c.Metadata.URL != "" {
		text += ", " + c.Metadata.URL
	}
	return strings.ReplaceAll(clean(text), "\n", " ")
}

// answer is the complete answer of a turn.
type answer struct {
	Conversation string `json:"conversation_id"`
	Message      struct {
		Content string `json:"content"`
	} `json:"message"`
	Mode    string     `json:"mode"`
	Sources []citation `json:"sources"`
	Pending []struct {
		Name string `json:"name"`
	} `json:"pending_sources"`
}

func (session *session) ask() *cobra.Command {
	conversation, model := "", ""
	command := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "Ask an agent; the answer is streamed, followed by the passages that it cites",
		Args:  cobra.ExactArgs(1),
		Long: "Ask an agent; the answer is streamed, followed by the passages that it cites.\n\n" +
			"QUESTION may be - for standard input, or @FILE. Without a language model, the passages that " +
			"contain the answer are printed.",
		Example: `  satchel ask "How do I get my money back?" --agent bakery`,
		RunE: func(c *cobra.Command, args []string) error {
			question, err := session.argument(args[0])
			if err != nil {
				return err
			}
			return session.chat(c.Context(), map[string]any{
				"message":         question,
				"fallback":        "passages",
				"conversation_id": conversation,
				"model":           model,
			})
		},
	}
	command.Flags().StringVarP(&conversation, "conversation", "c", "", "id of the conversation to continue")
	command.Flags().StringVar(&model, "model", "", "another model of the provider")
	return command
}

func (session *session) chat(ctx context.Context, body map[string]any) error {
	for name, value := range body {
		if value == "" {
			delete(body, name)
		}
	}
	if session.json {
		answer, err := session.api.raw(ctx, request{
			method: http.MethodPost,
			path:   session.path("chat"),
			body:   body,
		})
		if err != nil {
			return err
		}
		return writeJSON(session.Out, answer)
	}
	body["stream"] = true
	printed := false
	err := session.api.stream(
		ctx,
		request{
			method: http.MethodPost,
			path:   session.path("chat"),
			body:   body,
		},
		func(ev event) (bool, error) {
			return session.chatEvent(ev, &printed)
		},
	)
	if err != nil && printed {
		fmt.Fprintln(session.Out)
	}
	return err
}

// chatEvent prints one event of a turn.
func (session *session) chatEvent(ev event, printed *bool) (done bool, err error) {
	switch ev.name {
	case "delta":
		var delta struct{ Text string }
		err = json.Unmarshal(ev.data, &delta)
		fmt.Fprint(session.Out, clean(delta.Text))
		*printed = true
	case "tool_call":
		var call record
		err = json.Unmarshal(ev.data, &call)
		fmt.Fprintf(session.Notes, "calls %s %s\n", call.text("name"), call.text("arguments"))
	case "error":
		var out struct {
			Error Failure `json:"error"`
		}
		if json.Unmarshal(ev.data, &out) == nil && out.Error.Message != "" {
			return true, &out.Error
		}
		return true, fmt.Errorf("the answer failed: %s", clean(string(ev.data)))
	case "done":
		var all answer
		if err := json.Unmarshal(ev.data, &all); err != nil {
			return true, err
		}
		return true, session.endAnswer(&all, *printed)
	}
	return false, err
}

// endAnswer prints what follows the text of an answer.
func (session *session) endAnswer(answer *answer, printed bool) error {
	if !printed {
		fmt.Fprint(session.Out, clean(answer.Message.Content))
	}
	fmt.Fprintln(session.Out)
	for _, c := range answer.Sources {
		cited := strings.Contains(answer.Message.Content, "["+strconv.Itoa(c.Number)+"]")
		switch {
		case answer.Mode == "passages":
			fmt.Fprintf(session.Out, "\n[%d] %s\n%s\n", c.Number, c.place(), clean(c.Content))
		case cited:
			fmt.Fprintf(session.Out, "\n[%d] %s", c.Number, c.place())
		}
	}
	if answer.Mode != "passages" && len(answer.Sources) > 0 {
		fmt.Fprintln(session.Out)
	}
	for _, source := range answer.Pending {
		fmt.Fprintf(session.Notes, "Not read yet, ask again in a moment: %s\n", clean(source.Name))
	}
	fmt.Fprintf(session.Notes, "Continue with: satchel ask … --conversation %s\n", clean(answer.Conversation))
	return nil
}

func (session *session) search() *cobra.Command {
	limit := 0
	command := &cobra.Command{
		Use:     "search QUERY",
		Short:   "Search an agent's knowledge by meaning and by words",
		Args:    cobra.ExactArgs(1),
		Example: `  satchel search "opening hours" --agent bakery`,
		RunE: func(c *cobra.Command, args []string) error {
			found, err := session.api.raw(c.Context(), request{
				method: http.MethodGet,
				path:   session.path("sources", "search"),
				query:  url.Values{"query": args, "limit": {strconv.Itoa(limit)}},
			})
			if err != nil {
				return err
			}
			return session.printFound(found)
		},
	}
	command.Flags().IntVarP(&limit, "limit", "n", 5, "maximum number of passages")
	return command
}

func (session *session) printFound(raw json.RawMessage) error {
	var out struct {
		Results []citation
		Notice  string
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, raw)
	}
	for _, hit := range out.Results {
		fmt.Fprintf(session.Out, "%.2f  %s\n%s\n\n", hit.Score, hit.place(), clean(hit.Content))
	}
	if out.Notice != "" {
		fmt.Fprintln(session.Notes, clean(out.Notice))
	}
	return nil
}
