package e2e

import (
	"strings"
	"testing"

	"satchel/agent"
	"satchel/httpapi/apitest"
	"satchel/store/cluster"
)

// TestConsoleCluster shows the servers of a cluster, moves an agent to another one,
// drains a server, and shows errors; those who may not manage the cluster have no link to
// it.
func TestConsoleCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	var servers []*testServer
	first, second := apitest.NewCluster(t, func(parts apitest.Parts) string {
		servers = append(servers, serve(t, parts))
		return servers[len(servers)-1].url
	})
	first.Cluster.Hostile = true
	second.Own(t, "florist")
	moved := map[int]string{1280: "bakery", 375: "tailor"}
	for _, name := range moved {
		first.Own(t, name)
	}
	ts := servers[0]
	source := axe(t)
	for _, look := range axeLooks {
		p := ts.openConsole(t, look.width)
		p.colorScheme(look.scheme)
		p.eval(source)
		p.base = "#/cluster"
		p.open("", `document.querySelectorAll("#main tbody tr").length >= 5 && `+hasText("node-2"+hostile))
		p.checkAccessible("the servers, " + look.scheme)
		name := moved[look.width]
		p.clickOn(`document.querySelector("[title='Move ` + name + `']")`)
		p.waitFor(`document.querySelector("dialog[open] select")`)
		p.checkAccessible("a move, " + look.scheme)
		p.click("Move")
		p.waitFor(`!document.querySelector("dialog") && document.querySelector(".toasts").textContent.includes("` +
			name + ` is with node-2")`)
		if n, _, err := first.Owner(t.Context(), name); err != nil || n.URL != second.URL {
			t.Errorf("the agent is with %v, %v", n, err)
		}
		p.checkPage("moved")
	}
	p := ts.openConsole(t, 1280)
	p.clickOn(`document.querySelector(".switcher button")`)
	p.waitFor(`document.querySelector(".switcher a[href='#/cluster']")`)
	p.base = "#/cluster"
	p.open("?q=nobody", hasText("No agent matches"))
	second.Reason.Store(cluster.DiskFull)
	p.waitFor(hasText("disk full")) // the page polls
	second.Reason.Store(cluster.Reason(""))
	p.waitFor("!(" + hasText("disk full") + ")")
	p.click("Drain") // of the first in the list, the test's own server
	p.waitFor(`document.querySelector("dialog[open]").textContent.includes("gets no more until it is restarted")`)
	p.click("Drain")
	p.waitFor(`!document.querySelector("dialog") && document.querySelector(".toasts").textContent.includes("gives ` +
		`its agents to the others")`)
	<-first.Drained
	first.Cluster.Mu.Lock()
	first.Cluster.Failing = true
	first.Cluster.Mu.Unlock()
	p.waitFor(`document.querySelector("#main .card.bad")?.textContent.includes("is not responding")`) // the page polls
	p.checkPage("failing")
	first.Cluster.Mu.Lock()
	first.Cluster.Failing = false
	first.Cluster.Mu.Unlock()
	p.waitFor(`!document.querySelector("#main .card.bad")`)
	_, key, err := second.Folder.CreateKey(t.Context(), agent.Key{
		Name:   "reader",
		Role:   agent.RoleViewer,
		Agents: []string{"*"},
	})
	if err == nil {
		_, key, err = first.Folder.CreateKey(t.Context(), agent.Key{
			Name:   "reader",
			Role:   agent.RoleViewer,
			Agents: []string{"*"},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	reader := ts.with("X-API-Key", strings.TrimSpace(key))
	if got := reader.must(t, 200, "GET", "/api/console", ""); got["cluster"] != false {
		t.Errorf("a viewer gets %v", got)
	}
}
