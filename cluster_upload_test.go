package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"sync"
	"testing"
	"time"

	"satchel/store/cluster/pgtest"
)

// largeFile is a file of 24 MB that is quickly read as a document.
var largeFile = sync.OnceValue(func() []byte {
	text := make([]byte, 24<<20)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(text)
	return append([]byte("%PDF-1.4\n"), text...)
})

// halfway is the body of an upload that pauses in the middle.
type halfway struct {
	io.Reader
	wait func()
	left int
}

func (h *halfway) Read(p []byte) (int, error) {
	if h.left <= 0 && h.wait != nil {
		h.wait()
		h.wait = nil
	}
	n, err := h.Reader.Read(p)
	h.left -= n
	return n, err
}

// upload sends the large file to the agent of the test, and calls a function when 8 MB
// have been sent. It returns the status, 0 if there is no response, and the response.
func (n *clusterNode) upload(t *testing.T, name string, wait func()) (int, map[string]any) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write(largeFile())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	size := form.Len()
	req, err := http.NewRequestWithContext(
		t.Context(),
		"POST",
		n.url+"/agents/bakery/sources",
		&halfway{&form, wait, 8 << 20},
	)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	req.ContentLength = int64(size)
	req.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Logf("%s: %v", name, err)
		return 0, nil
	}
	defer resp.Body.Close()
	var answer map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	if answer != nil {
		answer["Retry-After"] = resp.Header.Get("Retry-After")
	}
	return resp.StatusCode, answer
}

// uploadAll uploads a file through each of the servers and calls a function when all are
// half sent. It returns the responses.
func uploadAll(t *testing.T, nodes []*clusterNode, meanwhile func()) (statuses []int, answers []map[string]any) {
	t.Helper()
	half, done, clients := make(chan struct{}), make(chan struct{}), sync.WaitGroup{}
	statuses, answers = make([]int, len(nodes)), make([]map[string]any, len(nodes))
	for i, n := range nodes {
		clients.Go(func() {
			statuses[i], answers[i] = n.upload(t, fmt.Sprintf("file-%d.pdf", i), func() {
				half <- struct{}{}
				<-done
			})
		})
	}
	for range nodes {
		select {
		case <-half:
		case <-time.After(time.Minute):
			t.Error("an upload does not get halfway")
		}
	}
	meanwhile()
	close(done)
	clients.Wait()
	return statuses, answers
}

// checkUploads compares each source of the agent with the file that was sent.
func (n *clusterNode) checkUploads(t *testing.T) (count int) {
	t.Helper()
	var listed []any
	for deadline := time.Now().Add(time.Minute); ; {
		status, answer := n.ask(t, "GET", "/agents/bakery/sources", nil)
		if status == 200 {
			listed = answer["sources"].([]any)
			break
		}
		if status != 503 || time.Now().After(deadline) {
			t.Fatalf("list sources: %d %v", status, answer)
		}
	}
	for _, s := range listed {
		resp, err := http.Get(fmt.Sprintf("%s/agents/bakery/sources/%v/file", n.url, s.(map[string]any)["id"]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !bytes.Equal(got, largeFile()) {
			t.Errorf("source %v: %d, %d bytes, %v", s, resp.StatusCode, len(got), err)
		}
	}
	return len(listed)
}

// TestClusterKeepsUploads moves an agent, then kills its owner, while files are uploaded.
// The move costs no upload; after the kill each upload is either stored completely or
// gets an error that says to try again.
func TestClusterKeepsUploads(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	database := pgtest.Start(t).Database("satchel")
	a, b := startNode(t, database), startNode(t, database)
	if status, made := a.insist(t, "POST", "/agents", map[string]any{"name": "bakery"}); status != 201 {
		t.Fatalf("%d %v", status, made)
	}
	statuses, answers := uploadAll(t, []*clusterNode{a, b, a}, func() {
		if status, answer := a.insist(t, "POST", "/cluster/agents/bakery/move", map[string]any{
			"node": b.url[:len(b.url)-len("/api")],
		}); status != 200 {
			t.Fatalf("move: %d %v", status, answer)
		}
	})
	for i, status := range statuses {
		if status != 201 {
			t.Errorf("upload %d while the agent moves: %d %v", i, status, answers[i])
		}
	}
	if n := a.checkUploads(t); n != len(statuses) {
		t.Errorf("%d sources of %d uploads", n, len(statuses))
	}
	before := len(statuses)
	statuses, answers = uploadAll(t, []*clusterNode{a, a}, b.kill)
	stored := 0
	for i, status := range statuses {
		switch {
		case status == 201:
			stored++
		case status != 503 || answers[i]["Retry-After"] == "" || errorOf(answers[i]) != "UNAVAILABLE":
			t.Errorf("upload %d while the owner is killed: %d %v", i, status, answers[i])
		}
	}
	if n := a.checkUploads(t); n < before+stored || n > before+len(statuses) {
		t.Errorf("%d sources; %d uploads were acknowledged", n, before+stored)
	}
}
