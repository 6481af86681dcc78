package httpapi

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestConsoleHoldings: the list of agents says what each has, also of files that are
// closed, which it does not open.
func TestConsoleHoldings(t *testing.T) {
	c := newOwnClient(t)
	c.upload(t, "/api/agents/default/sources", "handbook.md", "# Handbook\n", nil)
	c.must(t, 201, "POST", "/api/agents/default/conversations", `{}`)
	c.must(t, 201, "POST", "/api/agents/default/conversations", `{"status":"resolved"}`)
	createFlow(t, c, `[{"id":"t","type":"trigger"}]`, `[]`, "")
	c.must(t, 201, "POST", flowBase, `{"name":"Draft","nodes":[{"id":"t","type":"trigger"}]}`)
	want := map[string]int{"sources": 1, "conversations": 1, "workflows": 1}
	holds := at(c.must(t, 200, "GET", "/api/console", ""), "agents.0.holds")
	for name, n := range want {
		if got := at(holds, name); got != json.Number(fmt.Sprint(n)) {
			t.Errorf("%v %s, want %d", got, name, n)
		}
	}
}

// TestVersionsCountExecutions: each version of a workflow says how often it was
// executed and how often that failed, without tests.
func TestVersionsCountExecutions(t *testing.T) {
	c := newTestClient(t)
	graph := func(code string) string {
		return `[{"id":"t","type":"trigger"},{"id":"c","type":"code","data":{"code":"` + code + `"}}]`
	}
	id := createFlow(
		t,
		c,
		graph("if (trigger.bad) throw new Error('bad'); return 1"),
		`[{"source":"t","target":"c"}]`,
		"",
	)
	execute := func(inputs ...string) {
		for _, input := range inputs {
			c.must(t, 200, "POST", flowBase+"/execute?wait=20", `{"workflow_id":"`+id+`","input":`+input+`}`)
		}
	}
	execute(`{}`, `{"bad":true}`, `{}`)
	c.must(t, 200, "PUT", flowBase+"/"+id, `{"nodes":`+graph("return 2")+`}`)
	execute(`{"bad":true}`)
	c.must(
		t, 200, "POST", flowBase+"/test",
		`{"workflow_id":"`+id+`","nodes":`+graph("return 3")+`,"edges":[{"source":"t","target":"c"}]}`,
	)
	versions := c.must(t, 200, "GET", flowBase+"/"+id+"/versions", "")
	for i, want := range [][2]string{{"1", "0"}, {"3", "1"}} {
		if n, failed :=
			at(versions, fmt.Sprintf("versions.%d.executions", i)),
			at(versions, fmt.Sprintf("versions.%d.failed", i)); n != json.Number(want[0]) ||
			failed != json.Number(want[1]) {
			t.Errorf("version %d: %v executions, %v failed, want %v", 2-i, n, failed, want)
		}
		list := fmt.Sprintf("%s/executions?workflow_id=%s&version=%d", flowBase, id, 2-i)
		if n, failed :=
			at(c.must(t, 200, "GET", list, ""), "meta.total"),
			at(
				c.must(t, 200, "GET", list+"&status=errored", ""),
				"meta.total",
			); n != json.Number(want[0]) || failed != json.Number(want[1]) {
			t.Errorf("version %d: %v executions are listed, %v failed, want %v", 2-i, n, failed, want)
		}
	}
	if n := at(
		c.must(t, 200, "GET", flowBase+"/executions?tests=true&version=3&workflow_id="+id, ""),
		"meta.total",
	); n != json.Number("0") {
		t.Errorf("%v executions of a version that does not exist", n)
	}
	for _, query := range []string{"version=0&workflow_id=" + id, "version=1", "version=x&workflow_id=" + id} {
		apiCase{query, "GET", flowBase + "/executions?" + query, "", 400, invalid("version")}.run(t, c)
	}
}
