package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/httpapi/apitest"
)

// upload sends a file of 14 MB to the agent far.
func (n *fakeNode) upload(t *testing.T) answer {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "loaf.txt")
	if err == nil {
		_, err = io.WriteString(part, strings.Repeat("rye and wheat\n", 1<<20))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return n.do(t, "POST", "/api/agents/far/sources", &form, w.FormDataContentType())
}

// A large upload is not kept in memory while it is forwarded.
func TestUploadsAreForwarded(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	if a := first.upload(t); a.StatusCode != 201 || at(a.json, "name") != "loaf.txt" {
		t.Fatalf("%d %s", a.StatusCode, a.text)
	}
	first.Cluster.Owners[far.ID()] = &apitest.Node{URL: "http://127.0.0.1:1"}
	first.Cluster.Next = map[string]*apitest.Node{far.ID(): second.Node}
	if a := first.upload(t); a.StatusCode != 201 {
		t.Errorf("after a server that refused the connection: %d %s", a.StatusCode, a.text)
	}
}

// An upload whose agent moves meanwhile is sent again, to the new owner; one whose owner
// is lost gets 503, and so does one for which too much would have to be kept.
func TestUploadsFollowTheAgent(t *testing.T) {
	var used []*bodies
	t.Cleanup(func() { // once no request is in progress
		for i, b := range used {
			left, _ := filepath.Glob(filepath.Join(b.path, "body-*"))
			if bytes := b.files.Load(); bytes%maxBodiesInFiles != 0 || len(left) > 0 {
				t.Errorf("upload %d: %d bytes are kept, and files %v", i, bytes, left)
			}
		}
	})
	first, second := newCluster(t)
	far := second.Own(t, "far")
	var status int
	lost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 5<<20)
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		first.Cluster.Mu.Lock()
		first.Cluster.Owners[far.ID()] = second.Node
		first.Cluster.Mu.Unlock()
		w.WriteHeader(status)
	}))
	t.Cleanup(lost.Close)
	for _, c := range []struct {
		what   string
		answer int
		kept   int64 // of other bodies
		want   int
	}{
		{"moves", 421, 0, 201},
		{"moves while the server keeps much", 421, maxBodiesInFiles, 503},
		{"loses its owner", 0, 0, 503},
	} {
		status = c.answer
		b := newBodies(first.folder.Path(), first.server.memory)
		b.files.Store(c.kept)
		used, first.server.forwarder.bodies = append(used, b), b
		first.Cluster.Owners[far.ID()] = &apitest.Node{URL: lost.URL}
		a := first.upload(t)
		if a.StatusCode != c.want ||
			c.want == 503 && (a.Header.Get("Retry-After") == "" || at(a.json, "error.code") != "UNAVAILABLE") {
			t.Errorf("an agent %s: %d %s", c.what, a.StatusCode, a.text)
		}
	}
	first.Cluster.Owners[far.ID()] = second.Node
	if got := first.must(t, 200, "GET", "/api/agents/far/sources", ""); fmt.Sprint(at(got, "meta.total")) != "1" {
		t.Errorf("the sources: %v", got)
	}
}

// A client that sends Expect: 100-continue is not asked for a body that is not needed.
func TestBodyIsNotAskedFor(t *testing.T) {
	first, second := newCluster(t)
	far := second.Own(t, "far")
	first.server.forwarder.timeout = time.Millisecond
	first.Cluster.Owners[far.ID()] = &apitest.Node{URL: "http://127.0.0.1:1"}
	conn, err := net.Dial("tcp", strings.TrimPrefix(first.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(
		conn,
		"POST /api/agents/far/sources HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"+
			"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		2<<20,
	)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 503 ") {
		t.Errorf("%q, %v", line, err)
	}
}
