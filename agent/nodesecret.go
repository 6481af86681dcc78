package agent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// NodeSecrets are the credentials in the nodes of a workflow: the values of
// auth in http-request nodes and triggers, and of headers and query parameters whose
// names indicate a secret. A value with a template is not a secret, since it comes from
// elsewhere.
type NodeSecrets struct {
	Given     map[string]string // by name: the node's id, "/", and the path of the value in its data
	Unchanged []string          // names whose value was the mask
	Addresses map[string]string // by name, for secrets that a request carries: the address, see NodeAddress
}

// NodeSecret returns the name of a secret of a node.
func NodeSecret(nodeID, field string) string { return nodeID + "/" + field }

// TakeNodeSecrets replaces the secrets of nodes with Mask and returns them.
// Nodes without secrets stay byte for byte, unless an object in them has a
// duplicate name: then only the last value is kept.
func TakeNodeSecrets(nodes []RawNode) ([]RawNode, NodeSecrets, error) {
	taken := NodeSecrets{Given: map[string]string{}, Addresses: map[string]string{}}
	out := slices.Clone(nodes)
	for index, raw := range nodes {
		if !bytes.Contains(raw, []byte("http-request")) &&
			!bytes.Contains(raw, []byte(`"auth"`)) &&
			!bytes.Contains(raw, []byte(`\u`)) {
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
		sent := len(taken.Addresses)
		changed := holds && data != nil && taken.takeFromNode(node, data)
		if len(taken.Addresses) > sent && setsHost(data) {
			id, _ := node["id"].(string)
			return nil, taken, Invalid(
				"data.headers.Host",
				"must not be set by a node that holds a stored credential",
			).With("node_id", id)
		}
		if !changed && countNames(node) == countNamesInText(raw) {
			continue
		}
		masked, err := json.Marshal(node)
		if err != nil {
			return nil, taken, err
		}
		out[index] = masked
	}
	slices.Sort(taken.Unchanged)
	return out, taken, nil
}

// countNames counts the member names in a JSON value.
func countNames(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, inner := range v {
			n += countNames(inner)
		}
	case []any:
		for _, inner := range v {
			n += countNames(inner)
		}
	}
	return n
}

// countNamesInText counts the member names in a JSON text, which are more than in
// its value if an object has duplicates. The text is known to be valid.
func countNamesInText(raw []byte) (count int) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	type level struct {
		object bool
		tokens int // of this level
	}
	levels := []level{{}}
	for {
		token, err := dec.Token()
		if err != nil {
			return count
		}
		top := &levels[len(levels)-1]
		switch token {
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
			continue
		}
		if top.object && top.tokens%2 == 0 {
			count++
		}
		top.tokens++
		if token == json.Delim('{') || token == json.Delim('[') {
			levels = append(levels, level{object: token == json.Delim('{')})
		}
	}
}

// takeFromNode takes the secrets of one node, and reports whether it changed the
// data.
func (s *NodeSecrets) takeFromNode(node, data map[string]any) (changed bool) {
	nodeID, _ := node["id"].(string)
	fixed := Origin(NodeAddress(data)) != "" // otherwise no secret in the query could be stored
	take := func(field, value string) string {
		name := NodeSecret(nodeID, field)
		if value == Mask {
			s.Unchanged = append(s.Unchanged, name)
		} else if fixed {
			s.Given[name], changed = value, true
		} else {
			return value
		}
		s.Addresses[name] = NodeAddress(data)
		return Mask
	}
	if address, ok := data["url"].(string); ok && node["type"] != NodeTrigger {
		data["url"] = replaceURLSecrets(address, take)
	}
	if query, ok := data["query"].(map[string]any); ok && node["type"] != NodeTrigger {
		for name, value := range query {
			if text, ok := value.(string); ok && holdsSecret(name, text) {
				query[name] = take("query."+name, text)
			}
		}
	}
	for field, holder := range secretHolders(data) {
		key := field[strings.IndexByte(field, '.')+1:]
		value, ok := holder[key].(string)
		switch {
		case !ok || value == "" || strings.Contains(value, "{{"):
			continue
		case value == Mask:
			s.Unchanged = append(s.Unchanged, NodeSecret(nodeID, field))
		default:
			s.Given[NodeSecret(nodeID, field)] = value
			holder[key] = Mask
			changed = true
		}
		if node["type"] != NodeTrigger {
			s.Addresses[NodeSecret(nodeID, field)] = NodeAddress(data)
		}
	}
	return changed
}

// secretHolders maps the fields of a node's data that may hold a secret to the
// object that contains them.
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
		if IsSecretHeader(name) && !strings.EqualFold(name, "Idempotency-Key") {
			fields["headers."+name] = headers
		}
	}
	return fields
}

// PutNodeSecrets returns a node's data with masks replaced by the secrets,
// which find returns by name.
func PutNodeSecrets(
	nodeID string,
	data map[string]any,
	find func(name string) (string, error),
) (map[string]any, error) {
	out := maps.Clone(data)
	for _, key := range []string{"auth", "headers", "query"} {
		if object, ok := out[key].(map[string]any); ok {
			out[key] = maps.Clone(object)
		}
	}
	var failure error
	put := func(field, value string) string {
		if value != Mask || failure != nil {
			return value
		}
		value, failure = find(NodeSecret(nodeID, field))
		return value
	}
	for field, holder := range secretHolders(out) {
		key := field[strings.IndexByte(field, '.')+1:]
		if holder[key] == Mask {
			holder[key] = put(field, Mask)
		}
	}
	query, _ := out["query"].(map[string]any)
	for name, value := range query {
		if value == Mask {
			query[name] = put("query."+name, Mask)
		}
	}
	if address, ok := out["url"].(string); ok {
		out["url"] = replaceURLSecrets(address, put)
	}
	return out, failure
}
