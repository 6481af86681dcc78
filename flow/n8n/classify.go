package n8n

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// convertExtractor converts an extractor to a chat node with a schema.
func convertExtractor(converter *converter, unit *unit) {
	env := converter.each(unit)
	schema, ok := schemaOf(unit)
	if unit.p.or("schemaType", "fromAttributes") == "fromAttributes" {
		properties, required := map[string]any{}, []any{}
		for _, a := range unit.p.objects("attributes.attributes") {
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
		unit.fail("SCHEMA", "The schema cannot be read.")
	}
	data := map[string]any{
		"prompt": env.value(unit.p.at("text")),
		"system_prompt": "Extract the values that the schema asks for from the text. Leave out " +
			"what the text does not say.",
		"output_schema": env.literalJSON(schema),
		"tools":         false,
		"sources":       false,
	}
	env.helpers(data)
	s := env.emit("chat", data)
	if !unit.unsupported {
		s.ref = ref{
			fields: map[string]string{"output": "nodes." + unit.id + ".json"},
			closed: true,
			js:     fmt.Sprintf("({ output: nodes[%q]?.json })", unit.id),
		}
	}
}

// convertClassifier converts a classifier to a chat node that names a category, and a
// switch node.
func convertClassifier(converter *converter, unit *unit) {
	env := converter.each(unit)
	names, lines := []any{}, []string{}
	for _, category := range unit.p.objects("categories.categories") {
		name := category.text("category")
		names = append(names, name)
		lines = append(lines, "- "+name+": "+category.text("description"))
	}
	if shortKind(unit.kind) == "sentimentAnalysis" {
		for _, name := range words(unit.p.or("options.categories", "Positive, Neutral, Negative")) {
			names = append(names, name)
			lines = append(lines, "- "+name)
		}
	}
	if unit.p.text("options.fallback") == "other" {
		names = append(names, "other")
		lines = append(lines, "- other: none of these")
	}
	if len(names) == 0 ||
		len(names) > 15 ||
		slices.ContainsFunc(names, func(v any) bool {
			return strings.HasPrefix(fmt.Sprint(v), "=")
		}) {
		unit.fail("CATEGORIES", "The categories cannot be read.")
	}
	if unit.p.flag("options.multiClass") {
		unit.approximate("ALL_OUTPUTS", "One category is chosen, not several.")
	}
	data := map[string]any{
		"prompt":        env.value(unit.p.at("inputText")),
		"system_prompt": escapeTemplate("Choose the category of the text.\n" + strings.Join(lines, "\n")),
		"tools":         false,
		"sources":       false,
		"output_schema": map[string]any{
			"type":       "object",
			"properties": map[string]any{"category": map[string]any{"type": "string", "enum": names}},
			"required":   []any{"category"},
		},
	}
	env.helpers(data)
	in := env.in
	stream := env.emit("chat", data)
	if unit.unsupported {
		return
	}
	id := converter.newID(unit.id + "_route")
	cases := []any{}
	for i, name := range names {
		cases = append(cases, map[string]any{"id": fmt.Sprintf("output_%d", i), "value": name})
	}
	converter.addNode(
		unit,
		id,
		"switch",
		map[string]any{
			"value": "{{nodes." + unit.id + ".json.category}}",
			"cases": cases,
			"label": unit.name + ": route",
		},
		stream.from,
		stream.at,
	)
	for i := range names {
		one := *in
		handle := fmt.Sprintf("output_%d", i)
		one.from, one.taken, one.guards =
			[]exit{{id, handle, stream.at}}, fmt.Sprintf("nodes[%q]?.case === %q", id, handle),
			withGuard(in.guards, id, handle)
		unit.outputs[i] = &one
	}
}

// convertStore converts a vector store that is read to a search node.
func convertStore(converter *converter, unit *unit) {
	switch unit.p.or("mode", "retrieve") {
	case "load", "getMany":
	case "insert":
		converter.storeRows(unit)
		return
	default:
		unit.markHelpers(unit.id)
		unit.fail(
			"KNOWLEDGE",
			"Documents are put into sources here, which chunk and index them: create a source for them.",
		)
		return
	}
	env := converter.each(unit)
	data := map[string]any{"query": env.value(unit.p.at("prompt")), "limit": min(max(unit.p.number("topK", 4), 1), 50)}
	unit.approximate("KNOWLEDGE", "It searches the agent's sources: add what the vector store held.")
	unit.markHelpers(unit.id)
	stream := env.emit("search", data)
	if unit.unsupported {
		return
	}
	list := *stream
	list.list = true
	list.ref = ref{
		js: fmt.Sprintf(
			"(nodes[%q]?.results ?? []).map((r) => ({ document: { pageContent: r.content, metadata: "+
				"r.metadata }, score: r.score }))",
			unit.id,
		),
	}
	if env.at == env.at.context() {
		unit.outputs[0] = &list
	}
}

// storeRows converts a vector store into which documents are inserted to a table
// node. A source of the table's rows makes them searchable.
func (converter *converter) storeRows(unit *unit) {
	env := converter.each(unit)
	var loader params
	for _, h := range unit.helpers["ai_document"] {
		loader = h.p
		if h.p.text("dataType") == "binary" {
			unit.fail(
				"KNOWLEDGE",
				"It puts files into a vector store: upload them as sources, which chunk and index them.",
			)
		}
	}
	unit.markHelpers(unit.id)
	var text any
	if loader.text("jsonMode") == "expressionData" {
		text = env.value(loader.at("jsonData"))
	} else {
		text = env.compute("JSON.stringify(" + env.currentItemJS() + ")")
	}
	metadata := []string{}
	for _, m := range loader.objects("options.metadata.metadataValues") {
		metadata = append(metadata, "["+quote(m.text("name"))+"]: "+env.js(m["value"]))
	}
	row := map[string]any{"text": text}
	if len(metadata) > 0 {
		row["metadata"] = env.compute("({ " + strings.Join(metadata, ", ") + " })")
	}
	name := strings.Trim(
		notInTable().ReplaceAllString(
			strings.ToLower(cmp.Or(
				unit.p.text("qdrantCollection"),
				unit.p.text("pineconeIndex"),
				unit.p.text("tableName"),
				unit.p.text("memoryKey"),
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
	unit.approximate(
		"KNOWLEDGE",
		fmt.Sprintf(
			"The texts become rows: create the table %s with the columns text (text) and metadata (json), "+
				"and a source of type database with the query SELECT id, text FROM data_%s, which is "+
				"read again on a schedule.",
			name,
			name,
		),
	)
	stream := env.emit("table", map[string]any{
		"table":     name,
		"operation": "insert",
		"row":       row,
	})
	if !unit.unsupported {
		at := fmt.Sprintf("nodes[%q]?.row", unit.id)
		stream.ref = ref{
			fields: map[string]string{
				"pageContent": "nodes." + unit.id + ".row.text",
				"metadata":    "nodes." + unit.id + ".row.metadata",
			},
			closed: true,
			js:     fmt.Sprintf("({ pageContent: %s?.text, metadata: %s?.metadata })", at, at),
		}
	}
}
