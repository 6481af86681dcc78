package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
)

// loopOver returns a loop over the payload's items with one node in its body.
func loopOver(kind, data string) string {
	return `t trigger
		l loop {"items":"{{trigger.items}}","max_iterations":10000}
		c ` + kind + ` ` + data + `
		t -> l
		l:loop -> c
		c -> l`
}

// numbered returns a payload of n items, each with a text of the given size.
func numbered(n, bytes int) string {
	items := make([]string, n)
	text := strings.Repeat("x", bytes)
	for i := range items {
		items[i] = fmt.Sprintf(`{"n":%d,"text":%q}`, i, text)
	}
	return `{"items":[` + strings.Join(items, ",") + `]}`
}

func mustComplete(tb testing.TB, s Started) {
	tb.Helper()
	if s.Execution.Status != agent.ExecutionComplete {
		tb.Fatal(s.Execution.Status, s.Execution.Error)
	}
}

// The cost of one iteration does not grow with the number of iterations: a
// script is sent the values that it reads, not everything that it could read.
func TestIterationsStaySmall(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and does not test concurrency")
	}
	for name, body := range map[string]struct{ kind, data string }{
		"code": {
			"code",
			`{"code":"return {n: item.n, of: trigger.items.length, same: trigger.items[index].n, kept: ` +
				`nodes.t.items.at(-1).n}"}`,
		},
		"code with nothing": {"code", `{"code":"return 1"}`},
		"condition":         {"if-else", `{"condition":"item.n === trigger.items[index].n"}`},
	} {
		t.Run(name, func(t *testing.T) {
			db, e := open(t)
			var most int
			kind := *e.kinds[body.kind]
			kind.Run = func(ctx context.Context, c *Call) (Outcome, error) {
				code, expression := c.Text("code"), body.kind != "code"
				r, err := e.options.Scripts.Run(ctx, c.script(code+c.Text("condition"), expression))
				most = max(most, r.Sent)
				return Outcome{Output: map[string]any{"result": r.Value}, Handle: "true"}, err
			}
			e.Register(map[string]*Kind{body.kind: &kind})
			w := createWorkflow(t, db, e, loopOver(body.kind, body.data))
			var sent []int
			for _, n := range []int{100, 1000} {
				most = 0
				mustComplete(t, execute(t, db, e, w, numbered(n, 100)))
				sent = append(sent, most)
			}
			if sent[1] > sent[0]+200 {
				t.Errorf("an iteration received %d bytes with 100 items and %d with 1,000", sent[0], sent[1])
			}
		})
	}
}

// Code can read every name that templates can read, in any syntax.
func TestNamesInCode(t *testing.T) {
	db, e := open(t)
	input := `{"big":` + string(mustJSON(strings.Repeat("x", 10_000))) + `,"who":"Ada","list":[{"n":1}],"error":"mine"}`
	for code, want := range map[string]string{
		"return [who, input.who, trigger.who, nodes.t.who]":   `["Ada","Ada","Ada","Ada"]`,
		`return eval("w" + "ho")`:                             `"Ada"`,
		`return w\u0068o`:                                     `"Ada"`,
		"return [typeof none, typeof item, typeof execution]": `["undefined","undefined","object"]`,
		"return [error, workflow.name, typeof agent.id]":      `["mine","Test","string"]`,
		"return big.length + list[0].n":                       `10001`,
		"return Object.keys(trigger)":                         `["big","error","list","who"]`,
	} {
		t.Run(code, func(t *testing.T) {
			w := createWorkflow(
				t,
				db,
				e,
				"t trigger\nc code "+string(mustJSON(map[string]any{"code": code}))+"\nt -> c",
			)
			s := execute(t, db, e, w, input)
			mustComplete(t, s)
			if got := string(s.Execution.Output); got != `{"result":`+want+`}` {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// A payload may be five megabytes, even if every item of a loop sees it.
func TestLargestPayload(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(
		t,
		db,
		e,
		loopOver("code", `{"code":"return trigger.items.length === 5 && trigger.items[index].n === item.n"}`),
	)
	input := numbered(5, 5<<20/5-100)
	input = input[:len(input)-1] + strings.Repeat(" ", 5<<20-len(input)) + "}"
	s := execute(t, db, e, w, input)
	mustComplete(t, s)
	if got := strings.Count(string(s.Execution.Output), `{"result":true}`); got != 5 {
		t.Errorf("%d of 5 items saw the payload", got)
	}
	_, err := e.Execute(t.Context(), db, Request{
		WorkflowID: w.ID,
		Input:      json.RawMessage(input + " {"),
		Trigger:    "manual",
	})
	if agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a larger payload: %v", err)
	}
}
