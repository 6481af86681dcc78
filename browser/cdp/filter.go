package cdp

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// Error codes, as used by Chromium.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeServer  = -32000
	codeSession = -32001
)

// maxPending limits the commands of a client that are waiting for an answer.
const maxPending = 4096

// errorBody returns the error of an answer.
func errorBody(code int, text string) json.RawMessage {
	return encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, text})
}

// Options configure a Filter.
type Options struct {
	Root    string       // the client's session with the browser as a whole
	Context string       // the browser context whose targets the client may use
	NextID  func() int64 // returns ids of commands: at least FirstID, each only once in the life of a Chromium
	// CheckURL returns the address if pages may open it, or the reason why not as an
	// error.
	CheckURL func(string) (string, error)
}

// Filter decides what a client may do and see. It is safe for concurrent use.
type Filter struct {
	o Options

	mu       sync.Mutex
	sessions map[string]string   // targets of sessions created by the client, in addition to the root, by session
	targets  map[string]struct{} // targets of the context that the client has seen
	pending  map[int64]pending   // commands that have not been answered, by id on the pipe
}

// pending is a command that waits for its answer.
type pending struct {
	id      json.RawMessage // the client's; nil if the Filter sent it
	session string          // as the client named it
	result  func(f *Filter, result json.RawMessage) json.RawMessage
}

// Command is a parsed command of a client.
type Command struct {
	Method string
	Size   int // bytes

	id      json.RawMessage
	raw     json.RawMessage // params; nil if there are none
	session string          // "" means the root

	params map[string]json.RawMessage // of a checked command; encoded in place of raw
	result func(f *Filter, result json.RawMessage) json.RawMessage
	answer any // answers the command, which is then not sent
}

// Step is the result of handling a frame.
type Step struct {
	ToBrowser [][]byte
	ToClient  [][]byte
	End       bool // the client wants to close the browser
}

// NewFilter returns a Filter for a client that has connected.
func NewFilter(o Options) *Filter {
	return &Filter{
		o:        o,
		sessions: map[string]string{},
		targets:  map[string]struct{}{},
		pending:  map[int64]pending{},
	}
}

// Parse reads a client's frame. If there is no command, the step has the
// response. A command that is passed on is encoded again, because Chromium
// might interpret a name that occurs twice, or in another case, differently.
func Parse(frame []byte) (*Command, Step) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(frame, &fields) != nil || fields == nil {
		return nil, Step{
			ToClient: [][]byte{encode(message{Error: errorBody(codeParse, "Message must be a valid JSON object")})},
		}
	}
	command := &Command{Size: len(frame), id: fields["id"]}
	var id int32
	var session *string
	if json.Unmarshal(command.id, &id) != nil || isNull(command.id) {
		return nil, Step{
			ToClient: [][]byte{
				encode(message{Error: errorBody(codeInvalid, "Message must have integer 'id' property")}),
			},
		}
	}
	if raw, ok := fields["sessionId"]; ok && (json.Unmarshal(raw, &session) != nil || session == nil) {
		return nil, command.fail(codeInvalid, "Message may have a string 'sessionId' property")
	}
	if session != nil {
		command.session = *session
	}
	if json.Unmarshal(fields["method"], &command.Method) != nil || command.Method == "" {
		return nil, command.fail(codeInvalid, "Message must have string 'method' property")
	}
	if raw, ok := fields["params"]; ok && !isNull(raw) {
		if command.raw = bytes.TrimSpace(raw); command.raw[0] != '{' {
			return nil, command.fail(codeInvalid, "Message may have object 'params' property")
		}
	}
	return command, Step{}
}

func isNull(raw json.RawMessage) bool {
	return string(bytes.TrimSpace(raw)) == "null"
}

// clientAnswer is an answer that has the client's own id.
type clientAnswer struct {
	ID        json.RawMessage `json:"id"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
}

// fail answers a command with an error.
func (c *Command) fail(code int, text string) Step {
	return Step{ToClient: [][]byte{encode(clientAnswer{ID: c.id, Error: errorBody(code, text), SessionID: c.session})}}
}

// Refuse answers a command with the reason why it is not executed.
func (c *Command) Refuse(why string) Step {
	return c.fail(codeServer, c.Method+": "+why)
}

// Admit checks a command, and passes it on or answers it.
func (f *Filter) Admit(command *Command) Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, own := f.sessions[command.session]; command.session != "" && !own {
		return command.fail(codeSession, "Session with given id not found.")
	}
	if command.Method == "Browser.close" && command.session == "" {
		return Step{ToClient: [][]byte{encode(clientAnswer{ID: command.id, Result: encode(struct{}{})})}, End: true}
	}
	if err := f.checkLocked(command); err != nil {
		return command.Refuse(err.Error())
	}
	if command.answer != nil {
		return Step{
			ToClient: [][]byte{
				encode(clientAnswer{
					ID:        command.id,
					Result:    encode(command.answer),
					SessionID: command.session,
				}),
			},
		}
	}
	if len(f.pending) >= maxPending {
		return command.Refuse("too many commands wait for their answers")
	}
	params := command.raw
	if command.params != nil {
		params = encode(command.params)
	}
	return Step{
		ToBrowser: [][]byte{
			f.sendLocked(command.Method, params, command.session, pending{command.id, command.session, command.result}),
		},
	}
}

// sendLocked returns a command to send to Chromium.
func (f *Filter) sendLocked(method string, params json.RawMessage, session string, p pending) []byte {
	if session == "" {
		session = f.o.Root
	}
	id := f.o.NextID()
	f.pending[id] = p
	return encode(message{
		ID:        id,
		Method:    method,
		Params:    params,
		SessionID: session,
	})
}

// FromBrowser handles a frame from Chromium.
func (f *Filter) FromBrowser(frame []byte) Step {
	var m message
	if json.Unmarshal(frame, &m) != nil {
		return Step{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.ID != 0 {
		return f.answerLocked(m)
	}
	if m.SessionID == f.o.Root {
		m.SessionID = ""
	} else if _, own := f.sessions[m.SessionID]; !own {
		return Step{}
	}
	return f.eventLocked(m)
}

// answerLocked passes an answer on to the client.
func (f *Filter) answerLocked(m message) Step {
	p, ok := f.pending[m.ID]
	delete(f.pending, m.ID)
	if !ok || p.id == nil {
		return Step{}
	}
	if p.result != nil && m.Result != nil {
		m.Result = p.result(f, m.Result)
	}
	return Step{
		ToClient: [][]byte{encode(clientAnswer{ID: p.id, Result: m.Result, Error: m.Error, SessionID: p.session})},
	}
}

// eventLocked passes an event of one of the client's sessions on.
func (f *Filter) eventLocked(message message) Step {
	pass := true
	switch {
	case message.Method == "Target.attachedToTarget":
		return f.attachedLocked(message)
	case message.Method == "Target.detachedFromTarget":
		id := attached(message.Params)
		_, pass = f.sessions[id]
		delete(f.sessions, id)
	case message.Method == "Target.targetCreated", message.Method == "Target.targetInfoChanged":
		pass = f.admitTargetLocked(targetIn(message.Params), message.SessionID == "")
	case message.Method == "Target.targetDestroyed", message.Method == "Target.targetCrashed":
		id := targetIn(message.Params).TargetID
		_, pass = f.targets[id]
		if message.Method == "Target.targetDestroyed" {
			delete(f.targets, id)
		}
	case strings.HasPrefix(message.Method, "Browser.download"):
		message.Params = without(message.Params, "filePath") // a path on this machine
	default:
		pass = message.SessionID != "" && !strings.HasPrefix(message.Method, "Target.")
	}
	if !pass {
		return Step{}
	}
	return Step{ToClient: [][]byte{encode(message)}}
}

// attachedLocked passes a new session on to the client if its target belongs to the
// context. Otherwise it ends the session.
func (f *Filter) attachedLocked(m message) Step {
	id := attached(m.Params)
	if t := targetIn(m.Params); f.admitTargetLocked(t, m.SessionID == "") {
		f.sessions[id] = t.TargetID
		return Step{ToClient: [][]byte{encode(m)}}
	}
	return Step{ToBrowser: [][]byte{
		f.sendLocked("Runtime.runIfWaitingForDebugger", nil, id, pending{}),
		f.sendLocked("Target.detachFromTarget", encode(map[string]string{"sessionId": id}), m.SessionID, pending{}),
	}}
}

// targetInfo is the part of Target.TargetInfo on which decisions depend.
type targetInfo struct {
	TargetID  string `json:"targetId"`
	Type      string `json:"type"`
	ContextID string `json:"browserContextId"`
}

// targetIn returns the target in the parameters of an event.
func targetIn(params json.RawMessage) targetInfo {
	var p struct {
		TargetID   string     `json:"targetId"`
		TargetInfo targetInfo `json:"targetInfo"`
	}
	_ = json.Unmarshal(params, &p) // sent by Chromium, so valid
	if p.TargetID != "" {
		p.TargetInfo.TargetID = p.TargetID
	}
	return p.TargetInfo
}

// shownTypes are the types of targets that clients see.
var shownTypes = set(
	"page tab iframe worker shared_worker service_worker worklet auction_worklet shared_storage_worklet",
)

// admitTargetLocked reports whether a client may see a target, and remembers it. Targets that
// belong to a page are in the page's context.
func (f *Filter) admitTargetLocked(t targetInfo, ofBrowser bool) bool {
	ours := t.ContextID == f.o.Context || t.ContextID == "" && !ofBrowser
	if _, shown := shownTypes[t.Type]; !shown || !ours {
		return false
	}
	f.rememberLocked(t.TargetID)
	return true
}

// maxTargets limits the targets that are remembered. Chromium does not notify every
// client when a target ends.
const maxTargets = 10_000

// rememberLocked allows the client to use a target's id. If there are too many, only
// those with a session are kept.
func (f *Filter) rememberLocked(id string) {
	if len(f.targets) >= maxTargets {
		clear(f.targets)
		for _, target := range f.sessions {
			f.targets[target] = struct{}{}
		}
	}
	f.targets[id] = struct{}{}
}

// without returns an object without one of its properties.
func without(object json.RawMessage, name string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil || m[name] == nil {
		return object
	}
	delete(m, name)
	return encode(m)
}

func set(words string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, word := range strings.Fields(words) {
		out[word] = struct{}{}
	}
	return out
}
