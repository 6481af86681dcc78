package openapi

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
)

// reader reads one description.
type reader struct {
	root        map[string]any
	base        *url.URL // where it was read; nil if it was sent
	format      string
	doc         agent.APIDocument
	names       map[string]bool // of operations as tools
	ids         map[string]bool
	drafts      []draft // of the operations of doc
	schemaBytes int     // bytes of the drafts' own schemas

	definitions map[string]*definition // by reference; nil: it leads to no schema
	defNames    map[string]bool
	searches    int // see definition.seen
}

// parse reads a description in this process. base is the address that it was
// read from, or "".
func parse(data []byte, base string) (agent.APIDocument, error) {
	if len(data) > agent.MaxAPIDocument {
		return agent.APIDocument{}, tooLarge()
	}
	value, err := decode(data)
	if err != nil {
		return agent.APIDocument{}, err
	}
	r := &reader{
		root:        object(value),
		names:       map[string]bool{},
		ids:         map[string]bool{},
		definitions: map[string]*definition{},
		defNames:    map[string]bool{},
	}
	if base != "" {
		if r.base, err = url.Parse(base); err != nil {
			return agent.APIDocument{}, agent.Invalid("url", "must be a valid URL")
		}
	}
	if r.format, err = formatOf(r.root); err != nil {
		return agent.APIDocument{}, err
	}
	r.doc.Format = r.format
	if r.format == agent.FormatPostman {
		r.postman()
	} else {
		r.openAPI()
	}
	r.finish()
	if len(r.doc.Operations) == 0 {
		return agent.APIDocument{}, agent.Invalid("document", "describes no operation")
	}
	return r.doc, nil
}

func tooLarge() error {
	return agent.Errorf(
		agent.CodeFileTooLarge,
		"the description is larger than %d MB",
		agent.MaxAPIDocument>>20,
	).With("field", "document")
}

// formatOf finds the format of a description.
func formatOf(root map[string]any) (string, error) {
	version := text(root["openapi"])
	info := object(root["info"])
	switch {
	case strings.HasPrefix(version, "3.0"):
		return agent.FormatOpenAPI30, nil
	case strings.HasPrefix(version, "3."):
		return agent.FormatOpenAPI31, nil
	case strings.HasPrefix(text(root["swagger"]), "2"):
		return agent.FormatSwagger2, nil
	case object(root["collection"])["item"] != nil && len(root) <= 2:
		maps.Copy(root, object(root["collection"]))
		return formatOf(map[string]any{"info": root["info"], "item": root["item"]})
	case root["item"] != nil && (strings.Contains(text(info["schema"]), "/v2.") || info["_postman_id"] != nil):
		return agent.FormatPostman, nil
	}
	return "", agent.Invalid(
		"document",
		"must be OpenAPI 3, Swagger 2.0 or a Postman collection 2.1",
	).Because(errUnknownFormat)
}

// warn adds a warning, once.
func (r *reader) warn(format string, args ...any) {
	w := agent.Clip(fmt.Sprintf(format, args...), 300)
	if len(r.doc.Warnings) < maxWarnings && !slices.Contains(r.doc.Warnings, w) {
		r.doc.Warnings = append(r.doc.Warnings, w)
	}
}

// resolve follows references until there is an object.
func (r *reader) resolve(v any) map[string]any {
	for range maxHops {
		m := object(v)
		ref, ok := m["$ref"].(string)
		if !ok {
			return m
		}
		v = r.at(ref)
	}
	r.warn("a reference leads to itself")
	return nil
}

// at returns the value that a reference names, or nil.
func (r *reader) at(ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		r.warn("references to other documents are not followed: %s", agent.Clip(ref, 100))
		return nil
	}
	var value any = r.root
	for part := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		if entries := list(value); entries != nil {
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(entries) {
				value = nil
				break
			}
			value = entries[i]
			continue
		}
		value = object(value)[part]
	}
	if value == nil {
		r.warn("a reference leads nowhere: %s", agent.Clip(ref, 100))
	}
	return value
}

var methods = []string{"get", "put", "post", "patch", "delete", "head", "options"}

// openAPI reads a description in OpenAPI or Swagger.
func (r *reader) openAPI() {
	info := object(r.root["info"])
	r.doc.Title, r.doc.Version = agent.Clip(text(info["title"]), maxLine), agent.Clip(text(info["version"]), maxLine)
	r.servers()
	paths := object(r.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !strings.HasPrefix(path, "/") || len(path) > maxPathBytes {
			continue // an extension
		}
		item := r.resolve(paths[path])
		for _, method := range methods {
			if op := object(item[method]); op != nil {
				if len(r.doc.Operations) == agent.MaxAPIOperations {
					r.warn("only the first %d operations are read", agent.MaxAPIOperations)
					break
				}
				r.operation(path, method, item, op)
			}
		}
	}
	r.security()
}

// operation reads one operation.
func (r *reader) operation(path, method string, item, op map[string]any) {
	o := r.newOperation(text(op["operationId"]), strings.ToUpper(method), path, op)
	if servers := list(op["servers"]); len(servers) > 0 {
		o.Server = r.ownServer(servers)
	} else if servers := list(item["servers"]); len(servers) > 0 {
		o.Server = r.ownServer(servers)
	}
	o.Accept = r.accept(op)
	r.add(o, func(b *builder) {
		b.parameters(item, op)
		b.requestBody(op)
	})
}

// newOperation returns an operation with all but its arguments.
func (r *reader) newOperation(id, method, path string, op map[string]any) agent.OperationDefinition {
	definition := agent.OperationDefinition{
		Operation: agent.Operation{
			Method:     method,
			Tags:       []string{},
			Deprecated: isTrue(op["deprecated"]),
		},
	}
	path, _, _ = strings.Cut(path, "#")
	definition.Path, definition.Query, _ = strings.Cut(path, "?")
	definition.ID = strings.TrimSpace(id)
	if definition.ID == "" || len(definition.ID) > maxName || r.ids[definition.ID] {
		definition.ID = agent.Clip(method+" "+path, maxName)
	}
	for n := 2; r.ids[definition.ID]; n++ {
		definition.ID = agent.Clip(method+" "+path, maxName) + " " + strconv.Itoa(n)
	}
	r.ids[definition.ID] = true
	definition.Name = unique(toolName(definition.ID), r.names)
	definition.Summary, definition.Description =
		agent.Clip(oneLine(text(op["summary"])), maxLine),
		agent.Clip(strings.TrimSpace(text(op["description"])), maxText)
	if definition.Summary == "" {
		first, _, _ := strings.Cut(definition.Description, "\n")
		definition.Summary = agent.Clip(oneLine(first), maxLine)
	}
	for _, tag := range list(op["tags"]) {
		if name := agent.Clip(oneLine(text(tag)), maxLine); name != "" && len(definition.Tags) < maxTags {
			definition.Tags = append(definition.Tags, name)
		}
	}
	return definition
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}

// accept is JSON if an answer may be JSON.
func (r *reader) accept(op map[string]any) string {
	for _, media := range append(list(op["produces"]), list(r.root["produces"])...) {
		if isJSON(text(media)) {
			return "application/json"
		}
	}
	for _, answer := range object(op["responses"]) {
		for media := range object(r.resolve(answer)["content"]) {
			if isJSON(media) {
				return "application/json"
			}
		}
	}
	return "*/*"
}
