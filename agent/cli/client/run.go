package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"satchel/agent"
)

func (session *session) run() *cobra.Command {
	input, detach := "", false
	command := &cobra.Command{
		Use:   "run WORKFLOW",
		Short: "Execute a workflow, by id or name, and print its output",
		Args:  cobra.ExactArgs(1),
		Long: "Execute a workflow, by id or name, and print its output.\n\nThe steps go to standard error. " +
			"The command fails if the workflow does.",
		Example: `  satchel run welcome --input '{"email":"ada@example.com"}' --agent bakery`,
		RunE: func(c *cobra.Command, args []string) error {
			body, err := session.object(input)
			if err != nil {
				return err
			}
			return session.execute(c.Context(), args[0], body, detach)
		},
	}
	command.ValidArgsFunction = firstArgument(session.completeName(workflowList))
	command.Flags().StringVarP(&input, "input", "i", "", "input as a JSON object; - is standard input, @FILE a file")
	command.Flags().BoolVar(&detach, "detach", false, "print the execution's id and do not wait for its end")
	return command
}

func (session *session) object(text string) (map[string]any, error) {
	text, err := session.argument(text)
	if err != nil || text == "" {
		return map[string]any{}, err
	}
	var out map[string]any
	if err := agent.DecodeJSON([]byte(text), &out); err != nil {
		return nil, errors.New("--input must be a JSON object")
	}
	return out, nil
}

func (session *session) execute(ctx context.Context, workflow string, input map[string]any, detach bool) error {
	id, err := session.find(ctx, workflowList, workflow)
	if err != nil {
		return err
	}
	var started struct {
		ID string `json:"id"`
	}
	if err := session.api.call(
		ctx,
		http.MethodPost,
		session.path("workflows", "execute"),
		nil,
		map[string]any{"workflow_id": id, "input": input},
		&started,
	); err != nil {
		return err
	}
	if detach {
		return session.printCreated(nil, record{"id": started.ID})
	}
	if err := session.watch(ctx, started.ID); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(session.Notes, "The execution %s continues on the server.\n", clean(started.ID))
		}
		return err
	}
	var x record
	if err := session.api.call(
		ctx,
		http.MethodGet,
		session.path("workflows", "executions", started.ID),
		nil,
		nil,
		&x,
	); err != nil {
		return err
	}
	return session.printExecution(x)
}

// watch prints the steps of an execution until it has ended. A stream that is
// cut is opened again.
func (session *session) watch(ctx context.Context, id string) error {
	seen := map[string]bool{}
	for {
		err := session.api.stream(
			ctx,
			request{method: http.MethodGet, path: session.path("workflows", "executions", id, "events")},
			func(ev event) (bool, error) {
				if strings.HasPrefix(ev.name, "execution.") {
					return true, nil
				}
				return false, session.step(ev, seen)
			},
		)
		if !errors.Is(err, errConnectionLost) {
			return err
		}
		if err := session.api.wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// step prints that a node has finished.
func (session *session) step(ev event, seen map[string]bool) error {
	var node struct {
		ID      string  `json:"node_id"`
		Type    string  `json:"type"`
		Status  string  `json:"status"`
		Started string  `json:"started_at"`
		Path    any     `json:"path"`
		Took    float64 `json:"duration_ms"`
		Attempt int     `json:"attempt"`
	}
	if err := json.Unmarshal(ev.data, &node); err != nil || ev.name != "node.finished" {
		return err
	}
	key := fmt.Sprint(node.ID, node.Path, node.Attempt, node.Started)
	if !seen[key] {
		seen[key] = true
		fmt.Fprintf(
			session.Notes,
			"%s  %s (%s)  %.0f ms\n",
			clean(node.Status),
			clean(node.ID),
			clean(node.Type),
			node.Took,
		)
	}
	return nil
}

func (session *session) printExecution(x record) error {
	var err error
	if session.json {
		err = writeJSON(session.Out, x)
	} else if x["output"] != nil {
		err = writeJSON(session.Out, x["output"])
	}
	if status := x.text("status"); err == nil && status != "complete" {
		err = fmt.Errorf("execution %s: %s %s", x.text("id"), status, strings.TrimSpace(x.text("error.message")))
	}
	return err
}
