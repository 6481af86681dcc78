package agent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// NodeSecrets are the credentials that nodes of a workflow hold: the values of
// auth, of http-request and of triggers, and headers whose names say so. Those that hold a template are no
// secrets, since their value comes from elsewhere.
type NodeSecrets struct {
	Given map[string]string // by name: the node's id, "/", and the way to the value in its data
	Kept  []string          // names whose mask came in place of a secret
	Sent  map[string]string // by name, of those that a request carries: the address, see NodeAddress
}

// NodeSecret is the name of a secret of a node.
func NodeSecret(nodeID, field string) string { return nodeID + "/" + field }

// TakeNodeSecrets puts Mask in the place of the secrets of nodes, and returns
// them. Nodes without any stay as they are to the byte, unless a name comes
// twice in one: what the last one hides goes.
func TakeNodeSecrets(nodes []RawNode) ([]RawNode, NodeSecrets, error) {
	taken := NodeSecrets{Given: map[string]string{}, Sent: map[string]string{}}
	out := slices.Clone(nodes)
	for i, raw := range nodes {
		if !bytes.Contains(raw, []byte("http-request")) && !bytes.Contains(raw, []byte(`"auth"`)) && !bytes.Contains(raw, []byte(`\u`)) {
			continue
		}
		var node map[string]any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&node); err != nil {
			return nil, taken, Invalid("nodes", "must hold objects only").Because(err)
		}
		data, _ := node["data"].(map[string]any)
		holds := node["type"] == "http-request" || node["type"] == NodeTrigger && data["auth"] != nil
		sent := len(taken.Sent)
		changed := holds && data != nil && taken.takeFrom(node, data)
		if len(taken.Sent) > sent && setsHost(data) {
			id, _ := node["id"].(string)
			return nil, taken, Invalid("data.headers.Host", "must not be set by a node that holds a stored credential").With("node_id", id)
		}
		if !changed && namesIn(node) == namesWritten(raw) {
			continue
		}
		masked, err := json.Marshal(node)
		if err != nil {
			return nil, taken, err
		}
		out[i] = masked
	}
	slices.Sort(taken.Kept)
	return out, taken, nil
}

// namesIn counts the names in a JSON value.
func namesIn(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, inner := range v {
			n += namesIn(inner)
		}
	case []any:
		for _, inner := range v {
			n += namesIn(inner)
		}
	}
	return n
}

// namesWritten counts the names in a JSON text, which are more than those in
// its value when an object has one twice. The text was read before.
func namesWritten(raw []byte) (n int) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	type level struct {
		object bool
		tokens int // of the level itself
	}
	levels := []level{{}}
	for {
		token, err := dec.Token()
		if err != nil {
			return n
		}
		top := &levels[len(levels)-1]
		switch token {
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
			continue
		}
		if top.object && top.tokens%2 == 0 {
			n++
		}
		top.tokens++
		if token == json.Delim('{') || token == json.Delim('[') {
			levels = append(levels, level{object: token == json.Delim('{')})
		}
	}
}

// takeFrom reports whether it changed the data.
func (s *NodeSecrets) takeFrom(node, data map[string]any) (changed bool) {
	nodeID, _ := node["id"].(string)
	for field, holder := range secretHolders(data) {
		key := field[strings.IndexByte(field, '.')+1:]
		value, ok := holder[key].(string)
		switch {
		case !ok || value == "" || strings.Contains(value, "{{"):
			continue
		case value == Mask:
			s.Kept = append(s.Kept, NodeSecret(nodeID, field))
		default:
			s.Given[NodeSecret(nodeID, field)] = value
			holder[key] = Mask
			changed = true
		}
		if node["type"] != NodeTrigger {
			s.Sent[NodeSecret(nodeID, field)] = NodeAddress(data)
		}
	}
	return changed
}

// secretHolders maps the fields of a node's data that may hold a secret to the
// object that has it.
func secretHolders(data map[string]any) map[string]map[string]any {
	fields := map[string]map[string]any{}
	auth, _ := data["auth"].(map[string]any)
	for _, key := range []string{"token", "password", "value", "secret"} {
		if _, ok := auth[key]; ok {
			fields["auth."+key] = auth
		}
	}
	headers, _ := data["headers"].(map[string]any)
	for name := range headers {
		if SecretHeader(name) && !strings.EqualFold(name, "Idempotency-Key") {
			fields["headers."+name] = headers
		}
	}
	return fields
}

// PutNodeSecrets returns a node's data with its secrets, which find knows by
// their names, in the place of their masks.
func PutNodeSecrets(nodeID string, data map[string]any, find func(name string) (string, error)) (map[string]any, error) {
	out := maps.Clone(data)
	for _, key := range []string{"auth", "headers"} {
		if object, ok := out[key].(map[string]any); ok {
			out[key] = maps.Clone(object)
		}
	}
	for field, holder := range secretHolders(out) {
		key := field[strings.IndexByte(field, '.')+1:]
		if holder[key] != Mask {
			continue
		}
		value, err := find(NodeSecret(nodeID, field))
		if err != nil {
			return nil, err
		}
		holder[key] = value
	}
	return out, nil
}
