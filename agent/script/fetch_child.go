package script

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"satchel/agent/charset"
)

// Limits of the requests of one script.
const (
	MaxFetches       = 50
	maxParallel      = 4
	MaxFetchBody     = 1 << 20 // bytes of a request's body
	MaxFetchResponse = 5 << 20 // bytes of a response's body
	maxHead          = 64 << 10
	maxKey           = 1 << 20 // bytes of a key that a script looks up
)

// fetchRequest is a request that a child asks its parent to make.
type fetchRequest struct {
	ID      int
	Method  string
	URL     string
	Headers [][2]string
	Body    string
	// Credential is the name or id of one of the agent's credentials.
	Credential string
}

// fetchHead is a response without its body, or the reason why there is none.
type fetchHead struct {
	ID         int
	Problem    string
	Status     int
	StatusText string
	URL        string
	Headers    [][2]string
}

// headers returns the headers as JSON for the harness.
func (h fetchHead) headers() string {
	if h.Headers == nil {
		return "[]"
	}
	text, err := json.Marshal(h.Headers)
	if err != nil {
		return "[]"
	}
	return string(text)
}

func (h fetchHead) contentType() string {
	for _, header := range h.Headers {
		if header[0] == "content-type" {
			return header[1]
		}
	}
	return ""
}

// fetches holds the requests of one script in the child.
type fetches struct {
	allowed    bool
	total      int
	inProgress int            // requests in progress
	sent       map[int]*reply // sent to the parent
	queue      []fetchRequest // to be sent later
}

type reply struct {
	head fetchHead
	body []byte
}

// add adds a request. now reports whether to send it immediately.
func (f *fetches) add(request fetchRequest) (now bool, problem string) {
	size := len(request.URL) + len(request.Credential)
	for _, h := range request.Headers {
		size += len(h[0]) + len(h[1])
	}
	switch {
	case !f.allowed:
		return false, "fetch is not available here"
	case f.total >= MaxFetches:
		return false, fmt.Sprintf("a script can make at most %d requests", MaxFetches)
	case len(request.Body) > MaxFetchBody:
		return false, fmt.Sprintf("the body of a request can have at most %d bytes", MaxFetchBody)
	case size > maxHead || len(request.Method) > 32:
		return false, "the URL and the headers of a request are too long"
	}
	f.total++
	f.inProgress++
	if len(f.sent) >= maxParallel {
		f.queue = append(f.queue, request)
		return false, ""
	}
	f.send(request)
	return true, ""
}

func (f *fetches) send(r fetchRequest) {
	if f.sent == nil {
		f.sent = map[int]*reply{}
	}
	f.sent[r.ID] = &reply{}
}

// next returns the request to send after another one has ended.
func (f *fetches) next() (fetchRequest, bool) {
	if len(f.queue) == 0 || len(f.sent) >= maxParallel {
		return fetchRequest{}, false
	}
	r := f.queue[0]
	f.queue = f.queue[1:]
	f.send(r)
	return r, true
}

// take handles a frame about a fetch. It returns the response once it is
// complete.
func (f *fetches) take(in frame) (head fetchHead, body string, complete bool) {
	if in.kind == frameBody {
		id, piece := fetchID(in.payload)
		if r := f.sent[id]; r != nil {
			r.body = append(r.body, piece...)
		}
		return head, "", false
	}
	if json.Unmarshal(in.payload, &head) != nil || f.sent[head.ID] == nil {
		return head, "", false
	}
	r := f.sent[head.ID]
	if in.kind == frameHead && head.Problem == "" {
		r.head = head
		return head, "", false
	}
	delete(f.sent, head.ID)
	f.inProgress--
	if head.Problem != "" {
		return head, "", true
	}
	return r.head, string(charset.Decode(r.body, r.head.contentType())), true
}

// fetchID parses the number before a piece of a body.
func fetchID(payload []byte) (id int, piece []byte) {
	if len(payload) < 4 {
		return 0, nil
	}
	return int(binary.BigEndian.Uint32(payload)), payload[4:]
}
