package n8n

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// convertExtractor converts an extractor to a chat node with a schema.
func convertExtractor(c *converter, u *unit) {
	e := c.each(u)
	schema, ok := schemaOf(u)
	if u.p.or("schemaType", "fromAttributes") == "fromAttributes" {
		properties, required := map[string]any{}, []any{}
		for _, a := range u.p.objects("attributes.attributes") {
			kind := a.or("type", "string")
			if !slices.Contains([]string{"string", "number", "boolean"}, kind) {
				kind = "string"
			}
			properties[a.text("name")] = map[string]any{"type": kind, "description": a.text("description")}
			if a.flag("required") {
				required = append(required, a.text("name"))
			}
		}
		schema, ok = map[string]any{"type": "object", "properties": properties, "required": required}, true
	}
	if !ok {
		u.fail("SCHEMA", "The schema cannot be read.")
	}
	data := map[string]any{
		"prompt": e.value(u.p.at("text")),
		"system_prompt": "Extract the values that the schema asks for from the text. Leave out " +
			"what the text does not say.",
		"output_schema": e.literalJSON(schema),
		"tools":         false,
		"sources":       false,
	}
	e.helpers(data)
	s := e.emit("chat", data)
	if !u.unsupported {
		s.ref = ref{
			fields: map[string]string{"output": "nodes." + u.id + ".json"},
			closed: true,
			js:     fmt.Sprintf("({ output: nodes[%q]?.json })", u.id),
		}
	}
}

// convertClassifier converts a classifier to a chat node that names a category, and a
// switch node.
func convertClassifier(c *converter, u *unit) {
	e := c.each(u)
	names, lines := []any{}, []string{}
	for _, category := range u.p.objects("categories.categories") {
		name := category.text("category")
		names = append(names, name)
		lines = append(lines, "- "+name+": "+category.text("description"))
	}
	if shortKind(u.kind) == "sentimentAnalysis" {
		for _, name := range words(u.p.or("options.categories", "Positive, Neutral, Negative")) {
			names = append(names, name)
			lines = append(lines, "- "+name)
		}
	}
	if u.p.text("options.fallback") == "other" {
		names = append(names, "other")
		lines = append(lines, "- other: none of these")
	}
	if len(names) == 0 ||
		len(names) > 15 ||
		slices.ContainsFunc(names, func(v any) bool {
			return strings.HasPrefix(fmt.Sprint(v), "=")
		}) {
		u.fail("CATEGORIES", "The categories cannot be read.")
	}
	if u.p.flag("options.multiClass") {
		u.approximate("ALL_OUTPUTS", "One category is chosen, not several.")
	}
	data := map[string]any{
		"prompt":        e.value(u.p.at("inputText")),
		"system_prompt": escapeTemplate("Choose the category of the text.\n" + strings.Join(lines, "\n")),
		"tools":         false,
		"sources":       false,
		"output_schema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"category": map[string]any{"type": "string", "enum": names}},
			"required":   []any{"category"},
		},
	}
	e.helpers(data)
	in := e.in
	s := e.emit("chat", data)
	if u.unsupported {
		return
	}
	id := c.newID(u.id + "_route")
	cases := []any{}
	for i, name := range names {
		cases = append(cases, map[string]any{"id": fmt.Sprintf("output_%d", i), "value": name})
	}
	c.addNode(
		u,
		id,
		"switch",
		map[string]any{
			"value": "{{nodes." + u.id + ".json.category}}",
			"cases": cases,
			"label": u.name + ": route",
		},
		s.from,
		s.at,
	)
	for i := range names {
		one := *in
		handle := fmt.Sprintf("output_%d", i)
		one.from, one.taken, one.guards =
			[]exit{{id, handle, s.at}}, fmt.Sprintf("nodes[%q]?.case === %q", id, handle),
			withGuard(in.guards, id, handle)
		u.outputs[i] = &one
	}
}

// convertStore converts a vector store that is read to a search node.
func convertStore(c *converter, u *unit) {
	switch u.p.or("mode", "retrieve") {
	case "load", "getMany":
	case "insert":
		c.storeRows(u)
		return
	default:
		u.markHelpers(u.id)
		u.fail(
			"KNOWLEDGE",
			"Documents are put into sources here, which chunk and index them: create a source for them.",
		)
		return
	}
	e := c.each(u)
	data := map[string]any{"query": e.value(u.p.at("prompt")), "limit": min(max(u.p.number("topK", 4), 1), 50)}
	u.approximate("KNOWLEDGE", "It searches the agent's sources: add what the vector store held.")
	u.markHelpers(u.id)
	s := e.emit("search", data)
	if u.unsupported {
		return
	}
	list := *s
	list.list = true
	list.ref = ref{
		js: fmt.Sprintf(
			"(nodes[%q]?.results ?? []).map((r) => ({ document: { pageContent: r.content, metadata: "+
				"r.metadata }, score: r.score }))",
			u.id,
		),
	}
	if e.at == e.at.context() {
		u.outputs[0] = &list
	}
}

// storeRows converts a vector store into which documents are inserted to a table
// node. A source of the table's rows makes them searchable.
func (c *converter) storeRows(u *unit) {
	e := c.each(u)
	var loader params
	for _, h := range u.helpers["ai_document"] {
		loader = h.p
		if h.p.text("dataType") == "binary" {
			u.fail(
				"KNOWLEDGE",
				"It puts files into a vector store: upload them as sources, which chunk and index them.",
			)
		}
	}
	u.markHelpers(u.id)
	var text any
	if loader.text("jsonMode") == "expressionData" {
		text = e.value(loader.at("jsonData"))
	} else {
		text = e.compute("JSON.stringify(" + e.currentItemJS() + ")")
	}
	metadata := []string{}
	for _, m := range loader.objects("options.metadata.metadataValues") {
		metadata = append(metadata, "["+quote(m.text("name"))+"]: "+e.js(m["value"]))
	}
	row := map[string]any{"text": text}
	if len(metadata) > 0 {
		row["metadata"] = e.compute("({ " + strings.Join(metadata, ", ") + " })")
	}
	name := strings.Trim(
		notInTable().ReplaceAllString(
			strings.ToLower(cmp.Or(
				u.p.text("qdrantCollection"),
				u.p.text("pineconeIndex"),
				u.p.text("tableName"),
				u.p.text("memoryKey"),
				"documents",
			)),
			"_",
		),
		"_",
	)
	if name == "" || '0' <= name[0] && name[0] <= '9' || hasExpression(name) {
		name = "documents"
	}
	name = clip(name, 40)
	u.approximate(
		"KNOWLEDGE",
		fmt.Sprintf(
			"The texts become rows: create the table %s with the columns text (text) and metadata (json), "+
				"and a source of type database with the query SELECT id, text FROM data_%s, which is "+
				"read again on a schedule.",
			name,
			name,
		),
	)
	s := e.emit("table", map[string]any{
		"table":     name,
		"operation": "insert",
		"row":       row,
	})
	if !u.unsupported {
		at := fmt.Sprintf("nodes[%q]?.row", u.id)
		s.ref = ref{
			fields: map[string]string{
				"pageContent": "nodes." + u.id + ".row.text",
				"metadata":    "nodes." + u.id + ".row.metadata",
			},
			closed: true,
			js:     fmt.Sprintf("({ pageContent: %s?.text, metadata: %s?.metadata })", at, at),
		}
	}
}
