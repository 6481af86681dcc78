package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"satchel/agent"
)

var errTooComplex = agent.Errorf(
	agent.CodeInvalidFile,
	"the description has too many values, or is nested too deep",
).With("field", "document")

// decode decodes JSON or YAML. Numbers are json.Number.
func decode(data []byte) (any, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
	if len(data) == 0 {
		return nil, agent.Invalid("document", "must not be empty")
	}
	if data[0] == '{' {
		var v any
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if dec.Decode(&v) == nil && !dec.More() {
			remaining := maxValues
			return v, checkSize(v, 0, &remaining)
		}
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, agent.Invalid(
			"document",
			"is neither JSON nor YAML: "+agent.Clip(strings.ToValidUTF8(err.Error(), "\uFFFD"), 200),
		)
	}
	y := yamlReader{remaining: maxValues}
	return y.value(&node, 0)
}

// checkSize limits the nesting and the number of values.
func checkSize(value any, depth int, remaining *int) error {
	if *remaining--; depth > maxDepth || *remaining < 0 {
		return errTooComplex
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if err := checkSize(inner, depth+1, remaining); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := checkSize(inner, depth+1, remaining); err != nil {
				return err
			}
		}
	}
	return nil
}

// yamlReader converts YAML nodes. Aliases are expanded within its limits.
type yamlReader struct{ remaining int }

func (y *yamlReader) value(node *yaml.Node, depth int) (any, error) {
	if y.remaining--; depth > maxDepth || y.remaining < 0 {
		return nil, errTooComplex
	}
	switch node.Kind {
	case yaml.DocumentNode:
		if len(node.Content) == 1 {
			return y.value(node.Content[0], depth)
		}
	case yaml.AliasNode:
		return y.value(node.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, entry := range node.Content {
			v, err := y.value(entry, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		return y.mapping(node, depth)
	case yaml.ScalarNode:
		return scalar(node), nil
	}
	return nil, nil
}

func (y *yamlReader) mapping(node *yaml.Node, depth int) (any, error) {
	values := make(map[string]any, len(node.Content)/2)
	for index := 0; index+1 < len(node.Content); index += 2 {
		v, err := y.value(node.Content[index+1], depth+1)
		if err != nil {
			return nil, err
		}
		if node.Content[index].ShortTag() != "!!merge" {
			values[node.Content[index].Value] = v
			continue
		}
		for _, merged := range append(list(v), v) {
			for key, inner := range object(merged) {
				if _, given := values[key]; !given {
					values[key] = inner
				}
			}
		}
	}
	return values, nil
}

// scalar converts a scalar to its JSON form. Dates become text.
func scalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(node.Value, "true")
	case "!!int", "!!float":
		if json.Valid([]byte(node.Value)) {
			return json.Number(node.Value)
		}
		if i, err := strconv.ParseInt(
			strings.ReplaceAll(node.Value, "_", ""),
			0,
			64,
		); err == nil {
			return json.Number(strconv.FormatInt(i, 10))
		}
		if f, err := strconv.ParseFloat(node.Value, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return node.Value
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// text returns a scalar as text.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\uFFFD")
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// isTrue reports whether a value is true or the text "true".
func isTrue(v any) bool { return v == true || v == "true" }

var errUnknownFormat = errors.New("not a known format")
