package flow

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/agent"
)

// The person who decides an approval sees its title and message with the
// templates filled in, as plain text.
func TestApprovalIsShownFilled(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, `t trigger
		a approval {"title":"{{trigger.amount}}","message":"Pay {{trigger.amount}} to {{trigger.who}}? {{trigger.none}}"}
		s set {"values":{"was":"{{nodes.a.decision}}"}}
		t -> a
		a:approved -> s`)
	for name, c := range map[string]struct{ input, title, message string }{
		"a number": {`{"amount":120.50,"who":"Ada"}`, "120.50", "Pay 120.50 to Ada? "},
		"markup": {
			`{"amount":"<b>1</b>","who":"<script>x</script>"}`,
			"<b>1</b>",
			"Pay <b>1</b> to <script>x</script>? ",
		},
		"a template": {
			`{"amount":"{{trigger.who}}","who":"Ada"}`,
			"{{trigger.who}}",
			"Pay {{trigger.who}} to Ada? ",
		},
		"an object": {`{"amount":{"n":1},"who":["a","b"]}`, `{"n":1}`, `Pay {"n":1} to ["a","b"]? `},
		"a long message": {
			`{"amount":"1","who":"` + strings.Repeat("x", 20_000) + `"}`,
			"1",
			agent.Clip("Pay 1 to "+strings.Repeat("x", 20_000), maxMessage),
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := startWorkflow(t, db, e, w, c.input)
			live, done := e.Watch(id)
			defer done()
			waitForStatus(t, db, e, id, "a", agent.NodeWaiting)
			_, results, err := e.Execution(t.Context(), db, id)
			if err != nil {
				t.Fatal(err)
			}
			got := results[len(results)-1].Approval
			if got == nil || got.Title != c.title || got.Message != c.message {
				t.Errorf("got %+v", got)
			}
			select {
			case ev := <-live:
				if ev.Node != nil &&
					ev.Node.Status == agent.NodeWaiting &&
					(ev.Node.Approval == nil || *ev.Node.Approval != *got) {
					t.Errorf("the live event has %+v", ev.Node.Approval)
				}
			default: // the node was waiting before Watch was called
			}
			if _, err := e.Resume(t.Context(), db, id, Answer{
				NodeID: "a",
				Data:   json.RawMessage(`{"decision":"approved"}`),
			}); err != nil {
				t.Fatal(err)
			}
			waitForEnd(t, db, e, id)
			_, results, err = e.Execution(t.Context(), db, id)
			if err != nil || results[1].Approval == nil || *results[1].Approval != *got {
				t.Errorf("after the decision: %+v, %v", results[1], err)
			}
		})
	}
}
