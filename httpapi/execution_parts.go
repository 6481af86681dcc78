package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	"satchel/flow"
	"satchel/httpapi/rest"
)

// Limits of a preview, in bytes.
const (
	minPreview = 100
	maxPreview = 1 << 20
)

// valuePreview is the beginning of a long value.
type valuePreview struct {
	Truncated bool   `json:"truncated" example:"true"`
	Bytes     int    `json:"bytes" doc:"Length of the value as JSON." example:"5242880"`
	Head      string `json:"head" doc:"The beginning of the value's JSON."`
}

// previewOf returns the preview of a value longer than most bytes, or nil for
// a shorter one.
func previewOf(raw json.RawMessage, most int) *valuePreview {
	if len(raw) <= most {
		return nil
	}
	head := raw[:most]
	for i := 0; i < utf8.UTFMax && !utf8.Valid(head); i++ {
		head = head[:len(head)-1]
	}
	return &valuePreview{true, len(raw), string(head)}
}

// cutTo replaces values longer than most bytes with previews.
func (x *executionOut) cutTo(most int) {
	if p := previewOf(x.Input, most); p != nil {
		x.InputPreview, x.Input = p, json.RawMessage("null")
	}
	if p := previewOf(x.Output, most); p != nil {
		x.OutputPreview, x.Output = p, nil
	}
	x.NodeOutputs = map[string]*valuePreview{}
	for i := range x.NodeResults {
		r := &x.NodeResults[i]
		if p := previewOf(r.Output, most); p != nil {
			r.OutputBytes, r.Output = len(r.Output), nil
			x.NodeOutputs[strings.TrimSuffix(r.NodeID+"/"+r.FullPath(), "/")] = p
		}
	}
}

func checkPreview(most int) error {
	if most != 0 && (most < minPreview || most > maxPreview) {
		return agent.Invalid("preview", fmt.Sprintf("must be from %d to %d", minPreview, maxPreview))
	}
	return nil
}

type nodePartIn struct {
	executionIn
	Node    string `path:"node" doc:"Id of the node." example:"fetch"`
	Path    string `query:"path" doc:"Iterations of the loops around the node, as in path or iteration of its result." example:"2.0"`
	Part    string `query:"part" doc:"The node's input, its data with templates filled (resolved), or its output. The first two are computed again." enum:"input,resolved,output" default:"output" example:"output"`
	Pointer string `query:"pointer" doc:"JSON Pointer to a part of the value." example:"/body/rows/0"`
}

type nodePartOut struct {
	Value any `json:"value"`
}

func (s *Server) getNodePart(c *rest.Call, in *nodePartIn) (nodePartOut, error) {
	if in.Part == "" {
		in.Part = flow.PartOutput
	}
	if !slices.Contains(flow.NodeParts, in.Part) {
		return nodePartOut{}, agent.Invalid("part", "must be input, resolved or output")
	}
	v, err := s.flow.NodePart(c, c.DB, in.ID, in.Node, in.Path, in.Part)
	if err != nil {
		return nodePartOut{}, err
	}
	v, err = resolvePointer(v, in.Pointer)
	return nodePartOut{v}, err
}

// resolvePointer resolves a JSON Pointer (RFC 6901).
func resolvePointer(value any, pointer string) (any, error) {
	if pointer == "" {
		return value, nil
	}
	if pointer[0] != '/' {
		return nil, agent.Invalid("pointer", "must begin with /")
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token, found := unescape.Replace(token), false
		switch parent := value.(type) {
		case map[string]any:
			value, found = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if found = err == nil &&
				i >= 0 &&
				i < len(parent) &&
				strconv.Itoa(i) == token; found {
				value = parent[i]
			}
		}
		if !found {
			return nil, agent.NotFound("value at this pointer", pointer)
		}
	}
	return value, nil
}
