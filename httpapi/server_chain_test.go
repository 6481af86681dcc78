package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/flow"
	"satchel/schedule"
	"satchel/store"
)

// TestExecutionsThatCallThisServer has a workflow start itself over HTTP: through a hook,
// through the API, and through a contact that it creates there. Its chain ends as if it
// had started itself within the server.
func TestExecutionsThatCallThisServer(t *testing.T) {
	c, _ := openWith(t, func(o *Options) {
		o.NoAuth = true
		o.Flow = flow.New(flow.Options{
			Env: store.Env{
				Folder: o.Folder,
				Allow:  agent.MustAddressRanges("127.0.0.0/8"),
				Own:    egress.NewOwnHosts(o.PublicURL),
				Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
			},
		})
		if err := o.Flow.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Flow.Stop)
	})
	const workflows = "/api/agents/default/workflows"
	for name, call := range map[string]string{
		"a hook":  c.url + "/api/agents/default/hooks/{{workflow.id}}",
		"the API": c.url + workflows + "/execute?wait=20",
	} {
		t.Run(name, func(t *testing.T) {
			made := c.must(t, 201, "POST", workflows, `{"name":"w","status":"active","settings":{"concurrency":50},
				"nodes":[{"id":"t","type":"trigger","data":{"event":"webhook","auth":{"type":"none"}}},
					{"id":"h","type":"http-request","data":{"method":"POST","url":"`+call+`","body":{"workflow_id":"{{workflow.id}}"},"fail_on_status":false}},
					{"id":"r","type":"webhook-response","data":{"body":"{{nodes.h.body}}"}}],
				"edges":[{"source":"t","target":"h"},{"source":"h","target":"r"}]}`)
			id := made["id"].(string)
			c.must(t, 200, "POST", workflows+"/execute?wait=30", `{"workflow_id":"`+id+`"}`)
			list, _, err := c.db().Executions(
				t.Context(),
				store.ExecutionFilter{WorkflowID: id},
				store.Page{Limit: 100},
			)
			if err != nil {
				t.Fatal(err)
			}
			root, refused := list[len(list)-1].ID, 0
			for _, x := range list {
				if x.RootID != root {
					t.Errorf("%s has the root %s, not %s", x.ID, x.RootID, root)
				}
				if x.Error != nil && x.Error.Code == string(agent.CodeBudget) {
					refused++
				}
			}
			if len(list) != agent.MaxEventDepth+1 || refused != 1 {
				t.Errorf("%d executions, %d of them refused", len(list), refused)
			}
		})
	}
	t.Run("an event", func(t *testing.T) {
		made := c.must(t, 201, "POST", workflows, `{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger"},
			{"id":"h","type":"http-request","data":{"method":"POST","url":"`+c.url+`/api/agents/default/contacts","body":{"name":"Ada"}}}],"edges":[{"source":"t","target":"h"}]}`)
		ran := c.must(t, 200, "POST", workflows+"/execute?wait=20", `{"workflow_id":"`+made["id"].(string)+`"}`)
		root, _ := at(ran, "root_id").(string)
		events, err := c.db().Events(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == agent.EventContactCreated && (e.Depth != 1 || e.Root != root) {
				t.Errorf("depth %d, root %q", e.Depth, e.Root)
			}
		}
	})
	t.Run("a forged header", func(t *testing.T) {
		made := c.must(
			t, 201, "POST", workflows,
			`{"name":"w","status":"active","nodes":[{"id":"t","type":"trigger"}]}`,
		)
		c.with(agent.ChainHeader, "8.execution-x.AAAA").must(
			t,
			200,
			"POST",
			workflows+"/execute?wait=20",
			`{"workflow_id":"`+made["id"].(string)+`"}`,
		)
	})
}

// TestSchedulesOfExecutions has an execution create a schedule over HTTP that calls this
// server: the call belongs to the execution's chain.
func TestSchedulesOfExecutions(t *testing.T) {
	got := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get(agent.ChainHeader)
	}))
	t.Cleanup(receiver.Close)
	c, _ := openWith(t, func(o *Options) {
		o.NoAuth = true
		o.Scheduler = schedule.New(schedule.Options{
			Env: store.Env{
				Folder: o.Folder,
				Allow:  agent.MustAddressRanges("127.0.0.0/8"),
				Own:    egress.NewOwnHosts(o.PublicURL),
				Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
			},
		})
		if err := o.Scheduler.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.Scheduler.Stop)
	})
	const list = "/api/agents/default/schedules"
	body := `{"name":"n","type":"cron","cron_expression":"0 0 1 1 *","callback_type":"webhook","callback_id":"` +
		receiver.URL + `"}`
	made := c.with(
		agent.ChainHeader,
		agent.Chain{Root: "execution-x", Depth: 7}.Signed(),
	).must(t, 201, "POST", list, body)
	c.must(t, 200, "POST", list+"/"+made["id"].(string)+"/run", "")
	if chain, ok := agent.ReadChain(<-got); !ok || chain.Root != "execution-x" || chain.Depth != 1 {
		t.Errorf("%+v %v", chain, ok)
	}
	made = c.must(t, 201, "POST", list, body)
	c.must(t, 200, "POST", list+"/"+made["id"].(string)+"/run", "")
	if header := <-got; header != "" {
		t.Errorf("a person's schedule has the chain %q", header)
	}
}
