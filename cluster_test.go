package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/store/cluster/pgtest"
)

// clusterNode is a server of a cluster in a process of its own.
type clusterNode struct {
	url     string
	process *exec.Cmd
	key     string // the API key of requests; "" for none

	patience time.Duration // for a response; 0: 2 minutes

	database, folder string
	args             []string // additional flags of the command
}

func startNode(t *testing.T, database string, args ...string) *clusterNode {
	t.Helper()
	n := &clusterNode{database: database, folder: t.TempDir(), args: args}
	n.start(t)
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			text, _ := os.ReadFile(n.log())
			t.Logf("%s:\n%s", n.url, text[max(0, len(text)-64<<10):])
		}
	})
	return n
}

func (n *clusterNode) log() string { return filepath.Join(n.folder, "log") }

func (n *clusterNode) kill() {
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

// command returns the program's command with the settings of the server.
func (n *clusterNode) command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(
		os.Environ(),
		asProgram+"=1",
		"SATCHEL_OUTBOUND_ALLOW=127.0.0.0/8",
		"SATCHEL_CLUSTER="+n.database,
		"SATCHEL_MASTER_KEY="+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
	)
	return c
}

// start starts the server, or restarts it after kill.
func (n *clusterNode) start(t *testing.T) {
	t.Helper()
	n.process = n.command(append(
		[]string{"serve", "--addr", "127.0.0.1:0", "--rate-limits", "off", "--data", filepath.Join(n.folder, "data")},
		n.args...,
	)...)
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n.process.Stderr = log
	out, err := n.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := listens.FindStringSubmatch(lines.Text()); m != nil {
			n.url = m[1] + "/api"
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	text, _ := os.ReadFile(n.log())
	t.Fatalf("the server ended:\n%s", text)
}

// ask makes a request and returns the status and the body, to which the header
// Retry-After is added. The status is 0 if there is no response.
func (n *clusterNode) ask(t *testing.T, method, path string, body any) (int, map[string]any) {
	t.Helper()
	text, _ := json.Marshal(body)
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(n.patience, 2*time.Minute))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if n.key != "" {
		req.Header.Set("X-API-Key", n.key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	var answer map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	if wait := resp.Header.Get("Retry-After"); wait != "" && answer != nil {
		answer["Retry-After"] = wait
	}
	return resp.StatusCode, answer
}

// insist is ask as clients of a cluster do it: again while the response is that the agent
// is not available now, as it may be after a start, or when a busy machine has the server
// miss its lease.
func (n *clusterNode) insist(t *testing.T, method, path string, body any) (int, map[string]any) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		status, answer := n.ask(t, method, path, body)
		if status != 503 || answer["Retry-After"] == nil || time.Now().After(deadline) {
			return status, answer
		}
		<-time.After(50 * time.Millisecond) // the servers need CPU time, too
	}
}

// TestClusterSurvivesAKill runs two servers with one database, kills the owner of an
// agent while requests go to the other, and checks that every write that was acknowledged
// is there.
func TestClusterSurvivesAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	database := pgtest.Start(t).Database("satchel")
	a := startNode(t, database)
	b := startNode(t, database)
	status, made := a.insist(t, "POST", "/agents", map[string]any{"name": "Bakery"})
	if status != 201 {
		t.Fatalf("%d %v", status, made)
	}
	if status, answer := b.insist(t, "POST", "/agents", map[string]any{"name": "bakery"}); status != 409 {
		t.Errorf("a second agent with a name: %d %v", status, answer)
	}
	var ids []any
	refused := 0
	write := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); n > 0; {
			status, answer := b.ask(t, "POST", "/agents/bakery/contacts", map[string]any{"name": "x"})
			switch {
			case status == 201:
				ids = append(ids, answer["id"])
				n--
			case time.Now().After(deadline):
				t.Fatalf("the agent is not available again: %d %v", status, answer)
			case status != 503 || answer["Retry-After"] == nil:
				t.Fatalf("the response to a refused write is %d %v", status, answer)
			default:
				refused++
			}
		}
	}
	write(20)
	if err := a.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	write(20)
	t.Logf("written again after %v, %d refused", time.Since(began), refused)
	for _, id := range ids {
		if status, answer := b.insist(t, "GET", fmt.Sprintf("/agents/bakery/contacts/%v", id), nil); status != 200 {
			t.Errorf("acknowledged contact %v: %d %v", id, status, answer)
		}
	}
	if status, answer := b.insist(t, "GET", "/agents", nil); status != 200 || len(answer["agents"].([]any)) != 2 {
		t.Errorf("the agents are %d %v", status, answer)
	}
	c := startNode(t, database)
	if status, answer := c.insist(t, "GET", fmt.Sprintf("/agents/bakery/contacts/%v", ids[0]), nil); status != 200 {
		t.Errorf("through a server that has joined: %d %v", status, answer)
	}
	b.awaitNode(t, c, func(joined map[string]any) bool { return joined["alive"] == true })
	if err := b.process.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = b.process.Wait()
	if status, answer := c.insist(t, "GET", fmt.Sprintf("/agents/bakery/contacts/%v", ids[0]), nil); status != 200 {
		t.Errorf("after the other has stopped: %d %v", status, answer)
	}
	c.awaitNode(t, b, func(left map[string]any) bool {
		return left["alive"] == false && left["leaving"] == true && left["reason"] == "stopping"
	})
}

// awaitNode waits until the server has polled often enough to know about another one what
// is checks.
func (n *clusterNode) awaitNode(t *testing.T, other *clusterNode, is func(map[string]any) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		status, answer := n.insist(t, "GET", "/cluster", nil)
		if status != 200 {
			t.Fatalf("the servers: %d %v", status, answer)
		}
		url := strings.TrimSuffix(other.url, "/api")
		if slices.ContainsFunc(answer["nodes"].([]any), func(found any) bool {
			node := found.(map[string]any)
			return node["url"] == url && is(node)
		}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("about server %s another one knows only: %v", url, answer)
		}
		<-time.After(50 * time.Millisecond) // the servers need CPU time, too
	}
}

// TestClusterRevokesKeys creates a key through one server and revokes it through another:
// all servers accept it, then refuse it.
func TestClusterRevokesKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	database := pgtest.Start(t).Database("satchel")
	a, b, c := startNode(t, database), startNode(t, database), startNode(t, database)
	makeKey := func(name string) (id, key string) {
		t.Helper()
		status, made := a.insist(t, "POST", "/keys", map[string]any{
			"name":   name,
			"role":   "owner",
			"agents": []string{"*"},
		})
		if status != 201 {
			t.Fatalf("create a key: %d %v", status, made)
		}
		return made["id"].(string), made["key"].(string)
	}
	until := func(what string, want int) {
		t.Helper()
		began := time.Now()
		for _, n := range []*clusterNode{a, b, c} {
			for {
				status, answer := n.ask(t, "GET", "/agents/bakery", nil)
				if status == want {
					break
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("%s: %d %v", what, status, answer)
				}
				<-time.After(50 * time.Millisecond) // the servers need CPU time, too
			}
		}
		t.Logf("%s by all servers after %v", what, time.Since(began))
	}
	if status, made := a.insist(t, "POST", "/agents", map[string]any{"name": "bakery"}); status != 201 {
		t.Fatalf("%d %v", status, made)
	}
	until("requests without a key are accepted", 200)
	_, keep := makeKey("keep")
	until("requests without a key are refused", 403)
	a.key = keep
	id, key := makeKey("revoke")
	a.key, b.key, c.key = key, key, key
	until("the new key is accepted", 200)
	if status, answer := b.insist(t, "DELETE", "/keys/"+id, nil); status != 204 {
		t.Fatalf("revoke a key: %d %v", status, answer)
	}
	until("the revoked key is refused", 401)
	a.key, b.key, c.key = keep, keep, keep
	until("the other key is accepted", 200)
	// An agent that does not exist is not found, as on a single server.
	for _, path := range []string{
		"/agents/nobody",
		"/agents/nobody/contacts",
		"/agents/agent-06h0q6iggk7beju0bspv/settings",
	} {
		if status, answer := b.insist(t, "GET", path, nil); status != 404 {
			t.Errorf("%s: %d %v", path, status, answer)
		}
	}
}

var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

// TestClusterAnswersAlike sends every GET request that the API describes to the owner of
// an agent and to another server, and every request of any method for an agent that does
// not exist to both.
func TestClusterAnswersAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	database := pgtest.Start(t).Database("satchel")
	owner, other := startNode(t, database), startNode(t, database)
	if status, made := owner.insist(t, "POST", "/agents", map[string]any{"name": "bakery"}); status != 201 {
		t.Fatalf("%d %v", status, made)
	}
	_, description := owner.insist(t, "GET", "/openapi.json", nil)
	compared := 0
	compare := func(method, path, agent string) (status int) {
		t.Helper()
		path = pathParameter.ReplaceAllStringFunc(path, func(name string) string {
			if name == "{id}" {
				return agent
			}
			return "nothing"
		})
		status, answer := owner.insist(t, method, path, map[string]any{})
		got, through := other.insist(t, method, path, map[string]any{})
		if got != status || errorOf(through) != errorOf(answer) {
			t.Errorf(
				"%s %s: %d %v, through another server %d %v",
				method,
				path,
				status,
				errorOf(answer),
				got,
				errorOf(through),
			)
		}
		compared++
		return status
	}
	for path, item := range description["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			operation, _ := operation.(map[string]any)
			method = strings.ToUpper(method)
			ofAgent := strings.HasPrefix(path, "/agents/{id}")
			if isStream(operation) || method != "GET" && !ofAgent {
				continue
			}
			if method == "GET" {
				compare(method, path, "bakery")
				compare(method, path, "default")
			}
			if status := compare(method, path, "nobody"); ofAgent && status != 404 {
				t.Errorf("%s %s for an agent that does not exist: %d", method, path, status)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d responses were compared", compared)
	}
}

// isStream reports whether an operation responds with an event stream or a WebSocket.
func isStream(operation map[string]any) bool {
	text, _ := json.Marshal(operation["responses"])
	return bytes.Contains(text, []byte("text/event-stream")) || bytes.Contains(text, []byte(`"101"`))
}

// errorOf returns the code of a response that is an error.
func errorOf(answer map[string]any) any {
	failed, _ := answer["error"].(map[string]any)
	return failed["code"]
}
