package flow

import (
	"testing"
	"time"

	"satchel/agent"
)

// TestPaths runs graphs and checks the result of each node.
func TestPaths(t *testing.T) {
	db, e := open(t)
	for _, c := range []struct {
		name, graph, input string
		status             agent.ExecutionStatus
		story, output      string
	}{
		{"a line", `t trigger {"event":"manual"}
			a set {"values":{"hello":"{{name}}","n":"{{n}}"}}
			t -> a`, `{"name":"Ada","n":7}`, "complete", "t=success a=success", `{"hello":"Ada","n":7}`},
		{"a branch", `t trigger
			if if-else {"conditions":[{"left":"{{n}}","operator":"gt","right":5}]}
			yes set {"values":{"big":true}}
			no set {"values":{"big":false}}
			t -> if
			if:true -> yes
			if:false -> no`, `{"n":"7"}`, "complete", "t=success if=success yes=success no=skipped", `{"big":true}`},
		{"a join after a branch", `t trigger
			if if-else {"conditions":[{"left":"{{n}}","operator":"gt","right":5}]}
			yes set {"values":{"a":1}}
			no set {"values":{"b":2}}
			end set {"values":{"got":"{{input}}"}}
			t -> if
			if:true -> yes
			if:false -> no
			yes -> end
			no -> end`, `{"n":1}`, "complete", "t=success if=success yes=skipped no=success end=success", `{"got":{"b":2}}`},
		{"two ends", `t trigger
			a set {"values":{"x":1}}
			b set {"values":{"x":2}}
			t -> a
			t -> b`, `{}`, "complete", "t=success a=success b=success", `{"a":{"x":1},"b":{"x":2}}`},
		{"a dead path of three", `t trigger
			s switch {"value":"{{k}}","cases":[{"id":"one","value":1},{"id":"two","conditions":[{"left":"{{k}}","operator":"in","right":[2,3]}]}]}
			a set {"values":{"at":"a"}}
			b set {"values":{"at":"b"}}
			c set {"values":{"at":"c"}}
			d set {"values":{"at":"d"}}
			t -> s
			s:one -> a
			a -> b
			s:two -> c
			s -> d`, `{"k":3}`, "complete", "t=success s=success a=skipped c=success d=skipped b=skipped", `{"at":"c"}`},
		{"a disabled node", `t trigger
			a set {"disabled":true,"values":{"x":1}}
			b set {"values":{"got":"{{input.n}}"}}
			t -> a
			a -> b`, `{"n":4}`, "complete", "t=success a=skipped b=success", `{"got":4}`},
		{"an error", `t trigger
			a chat {"prompt":"fail"}
			b set {"values":{}}
			t -> a
			a -> b`, `{}`, "errored", "t=success a=error", ``},
		{"an error edge", `t trigger
			a chat {"prompt":"fail now"}
			b set {"values":{}}
			c set {"values":{"why":"{{error.message}} in {{error.node_id}}"}}
			t -> a
			a -> b
			a:error -> c`, `{}`, "complete", "t=success a=error b=skipped c=success", `{"why":"said to fail now in a"}`},
		{"an ignored error", `t trigger
			a chat {"prompt":"fail","on_error":"continue"}
			b set {"values":{"code":"{{nodes.a.error.code}}"}}
			t -> a
			a -> b`, `{}`, "complete", "t=success a=error b=success", `{"code":"UPSTREAM_ERROR"}`},
		{"an error edge without an error", `t trigger
			a chat {"prompt":"fail","on_error":"stop"}
			c set {"values":{}}
			t -> a
			a:error -> c`, `{}`, "errored", "t=success a=error", ``},
		{"a loop", `t trigger
			l loop {"items":"{{list}}","item_variable":"x"}
			a set {"values":{"twice":"{{x}}{{x}}","i":"{{index}}"}}
			end set {"values":{"n":"{{nodes.l.count}}","last":"{{nodes.l.results[1].twice}}"}}
			t -> l
			l:loop -> a
			a -> l
			l:done -> end`, `{"list":["p","q"]}`, "complete", "t=success a@0=success a@1=success l=success end=success", `{"last":"qq","n":2}`},
		{"a loop over nothing", `t trigger
			l loop {"items":[]}
			a set {"values":{}}
			t -> l
			l:loop -> a`, `{}`, "complete", "t=success l=success", `{"count":0,"errors":[],"results":[]}`},
		{"loops in loops", `t trigger
			l loop {"items":"{{rows}}","item_variable":"row"}
			m loop {"items":"{{row}}","item_variable":"cell"}
			a set {"values":{"v":"{{cell}}"}}
			b set {"values":{"n":"{{nodes.m.count}}"}}
			t -> l
			l:loop -> m
			m:loop -> a
			a -> m
			m:done -> b
			b -> l`, `{"rows":[[1,2],[3]]}`, "complete",
			"t=success a@0.0=success a@0.1=success m@0=success b@0=success a@1.0=success " +
				"m@1=success b@1=success l=success",
			`{"count":2,"errors":[],"results":[{"n":2},{"n":1}]}`},
		{"a branch in a loop", `t trigger
			l loop {"items":[1,2]}
			if if-else {"conditions":[{"left":"{{item}}","operator":"==","right":1}]}
			a set {"values":{"one":true}}
			b set {"values":{"one":false}}
			t -> l
			l:loop -> if
			if:true -> a
			if:false -> b`, `{}`, "complete", "t=success if@0=success a@0=success b@0=skipped if@1=success a@1=skipped b@1=success l=success",
			`{"count":2,"errors":[],"results":[{"one":true},{"one":false}]}`},
		{"a loop that is skipped", `t trigger
			if if-else {"conditions":[]}
			l loop {"items":[1]}
			a set {"values":{}}
			b set {"values":{"ok":1}}
			t -> if
			if:false -> l
			l:loop -> a
			if:true -> b`, `{}`, "complete", "t=success if=success l=skipped a=skipped b=success", `{"ok":1}`},
		{"an error in a loop", `t trigger
			l loop {"items":["ok","fail","ok"]}
			a chat {"prompt":"{{item}}"}
			t -> l
			l:loop -> a
			a -> l`, `{}`, "errored", "t=success a@0=success a@1=error l=error", ``},
		{"errors in a loop that continues", `t trigger
			l loop {"items":["ok","fail","ok"],"continue_on_error":true}
			a chat {"prompt":"{{item}}"}
			b set {"values":{"text":"{{nodes.a.text}}"}}
			end set {"values":{"bad":"{{nodes.l.errors[0].index}}","results":"{{nodes.l.results}}"}}
			t -> l
			l:loop -> a
			a -> b
			l:done -> end`, `{}`, "complete", "t=success a@0=success b@0=success a@1=error a@2=success b@2=success l=success end=success",
			`{"bad":1,"results":[{"text":"ok"},null,{"text":"ok"}]}`},
		{"too many items", `t trigger
			l loop {"items":[1,2,3],"max_iterations":2}
			a set {"values":{}}
			t -> l
			l:loop -> a`, `{}`, "errored", "t=success l=error", ``},
		{"items that are not a list", `t trigger
			l loop {"items":"{{nothing}}"}
			a set {"values":{}}
			t -> l
			l:loop -> a`, `{}`, "errored", "t=success l=error", ``},
		{"an unreachable node", `t trigger
			a set {"values":{"x":1}}
			b set {"values":{"x":2}}
			t -> a`, `{}`, "complete", "t=success b=skipped a=success", `{"x":1}`},
		{"a node that hangs", `t trigger
			a chat {"prompt":"hang","timeout_ms":20}
			t -> a`, `{}`, "errored", "t=success a=error", ``},
		{"code", `t trigger
			a code {"code":"console.log('n', n); return {twice: input.n * 2, also: nodes.t.n}"}
			if if-else {"condition":"nodes.a.twice > 10 && '{{n}}' === '{{n}}'"}
			b code {"code":"return [1, 2]"}
			c code {"code":"throw new Error('no')"}
			t -> a
			a -> if
			if:true -> b
			if:false -> c`, `{"n":7}`, "complete", "t=success a=success if=success c=skipped b=success", `{"result":[1,2]}`},
		{"code that throws", `t trigger
			a code {"code":"console.log('so far'); throw new Error('no more')"}
			b set {"values":{"why":"{{error.code}}: {{error.message}}"}}
			t -> a
			a:error -> b`, `{}`, "complete", "t=success a=error b=success", `{"why":"SCRIPT_ERROR: no more"}`},
		{"SQL", `t trigger
			a sql {"query":"INSERT INTO contacts(name) VALUES (?)","params":["{{who}}"]}
			b sql {"query":"SELECT name FROM contacts WHERE name = :who","params":{"who":"{{who}}"}}
			c set {"values":{"name":"{{nodes.b.rows[0][0]}}","changes":"{{nodes.a.changes}}"}}
			t -> a
			a -> b
			b -> c`, `{"who":"Grace"}`, "complete", "t=success a=success b=success c=success", `{"changes":1,"name":"Grace"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := execute(t, db, e, createWorkflow(t, db, e, c.graph), c.input)
			if got := summarize(s.Results); s.Execution.Status != c.status ||
				got != c.story ||
				string(s.Execution.Output) != c.output {
				t.Errorf(
					"%s\n%s\n%s %v, want\n%s\n%s\n%s",
					s.Execution.Status, got, s.Execution.Output, s.Execution.Error, c.status, c.story, c.output,
				)
			}
			if c.name == "code that throws" &&
				(len(s.Results[1].Logs) != 1 || s.Results[1].Logs[0].Message != "so far") {
				t.Errorf("logs: %+v", s.Results[1].Logs)
			}
			x, results, err := db.Execution(t.Context(), s.Execution.ID)
			if err != nil || x.Status != c.status || summarize(results) != c.story {
				t.Errorf("stored: %v %s\n%s", err, x.Status, summarize(results))
			}
		})
	}
}

// TestDatesInTheAgentsZone formats dates in the time zone of the agent's
// settings.
func TestDatesInTheAgentsZone(t *testing.T) {
	db, e := open(t)
	w := createWorkflow(t, db, e, `t trigger
		a set {"values":{"at":"{{when | date:\"DD.MM.YYYY HH:mm\"}}"}}
		t -> a`)
	at := func() string {
		started, err := e.Execute(t.Context(), db, Request{
			WorkflowID: w.ID,
			Trigger:    "manual",
			Input:      []byte(`{"when":"2026-07-01T22:30:00Z"}`),
			Wait:       time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(started.Execution.Output)
	}
	if got := at(); got != `{"at":"01.07.2026 22:30"}` {
		t.Errorf("in UTC: %s", got)
	}
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		Timezone: agent.Some("Europe/Berlin"),
	}); err != nil {
		t.Fatal(err)
	}
	if got := at(); got != `{"at":"02.07.2026 00:30"}` {
		t.Errorf("in Berlin: %s", got)
	}
}
