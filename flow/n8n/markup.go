package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertExtraction makes code that extracts values from HTML by selectors.
func convertExtraction(converter *converter, unit *unit) {
	env := converter.each(unit)
	if unit.p.text("sourceData") == "binary" {
		unit.fail("BINARY", "The HTML is a file of the item, and items have no files here.")
	}
	values, renders := []any{}, false
	for _, v := range unit.p.objects("extractionValues.values") {
		how := v.or("returnValue", "text")
		renders = renders || how == "text" && unit.version >= 1.2 && shortKind(unit.kind) == "html"
		values = append(values, map[string]any{
			"key":           v.text("key"),
			"cssSelector":   env.literal(v.text("cssSelector")),
			"returnValue":   how,
			"attribute":     env.literal(v.text("attribute")),
			"returnArray":   v.flag("returnArray"),
			"skipSelectors": v.text("skipSelectors"),
		})
	}
	if renders {
		unit.approximate(
			"TEXT",
			"Texts are those of the elements; n8n also writes links, lists, tables and headings of them as text.",
		)
	}
	trim := true
	if v, ok := unit.p.at("options.trimValues").(bool); ok {
		trim = v
	}
	options := quote(map[string]any{"trim": trim, "clean": unit.p.flag("options.cleanUpText")})
	name := quote(unit.p.or("dataPropertyName", "data"))
	code := fmt.Sprintf(
		"const source = $get($json, %s)\nif (source === undefined) throw new Error(\"No property named "+
			"\" + %s + \" exists!\")\n",
		name,
		name,
	)
	env.emit("code", map[string]any{
		"code": env.script(
			code + fmt.Sprintf(
				"return $extracted(String(Array.isArray(source) ? source[0] : source), %s, %s)",
				quote(values),
				options,
			),
		),
	})
}

// literal returns a parameter that must not contain an expression.
func (env *env) literal(text string) string {
	if strings.HasPrefix(text, "=") && hasExpression(text) {
		env.u.fail("PARAMETER", "A selector is computed.")
	}
	return strings.TrimPrefix(text, "=")
}

// convertMarkdown makes code that converts Markdown to HTML, or HTML to Markdown.
func convertMarkdown(converter *converter, unit *unit) {
	env := converter.each(unit)
	js := ""
	if unit.p.or("mode", "htmlToMarkdown") == "htmlToMarkdown" {
		js = "$htmlToMarkdown(String(" + env.js(unit.p.at("html")) + "))"
		unit.approximate(
			"MARKDOWN",
			"The Markdown means the same; its spaces, escapes and marks of lists may differ, and the "+
				"node's options are left out.",
		)
	} else {
		o := unit.p.object("options")
		js = fmt.Sprintf(
			"$markdownToHtml(%s, %s)",
			env.js(unit.p.at("markdown")),
			quote(map[string]any{
				"tables": o.flag("tables"),
				"breaks": o.flag("simpleLineBreaks"),
				"ids":    !o.flag("noHeaderId"),
				"strike": o.flag("strikethrough"),
			}),
		)
		unit.approximate(
			"MARKDOWN",
			"The HTML means the same; its spaces may differ, and further options of the node are left out.",
		)
	}
	env.emit("code", map[string]any{
		"code": env.script("return $set($copy($json), " + quote(unit.p.or("destinationKey", "data")) + ", " + js + ")"),
	})
}

// convertXML makes code that converts XML to an object, or an object to XML.
func convertXML(converter *converter, unit *unit) {
	env := converter.each(unit)
	name := quote(unit.p.or("dataPropertyName", "data"))
	options := map[string]any(unit.p.object("options"))
	if options == nil {
		options = map[string]any{}
	}
	if unit.p.or("mode", "xmlToJson") == "xmlToJson" {
		code := fmt.Sprintf(
			"if ($json[%s] === undefined) throw new Error(\"Item has no JSON property called \" + %s)\n",
			name, name,
		)
		env.emit("code", map[string]any{
			"code": env.script(code + "return $fromXML($json[" + name + "], " + quote(options) + ")"),
		})
		return
	}
	unit.approximate("ORDER", "The elements are in alphabetical order, since fields of items keep no order.")
	env.emit("code", map[string]any{
		"code": env.script("return { [" + name + "]: $toXML($json, " + quote(options) + ") }"),
	})
}

// convertCrypto makes code that hashes, or generates an identifier.
func convertCrypto(converter *converter, unit *unit) {
	env := converter.each(unit)
	js, action := "", unit.p.or("action", "hash")
	if unit.p.flag("binaryData") {
		unit.fail("BINARY", "It hashes a file of the item, and items have no files here.")
	}
	bytes := "$bytes($text(" + env.js(unit.p.at("value")) + "))"
	kind := strings.ReplaceAll(unit.p.or("type", "MD5"), "-", "")
	if action != "generate" &&
		action != "sign" &&
		kind != "MD5" &&
		kind != "SHA1" &&
		kind != "SHA256" &&
		kind != "SHA384" &&
		kind != "SHA512" {
		unit.fail("OPERATION", "The hash "+clip(kind, 40)+" is not known here.")
	}
	encode := "$hex"
	if unit.p.text("encoding") == "base64" {
		encode = "$base64"
	}
	switch action {
	case "hash":
		js = fmt.Sprintf("%s($hash(%s, %s))", encode, quote(kind), bytes)
	case "hmac":
		if !strings.HasPrefix(unit.p.text("secret"), "=") && unit.p.has("secret") {
			unit.fail("SECRET", "The key of the signature is a secret that the file of n8n holds; it is not imported.")
		}
		js = fmt.Sprintf(
			"%s($hmac(%s, $bytes($text(%s)), %s))",
			encode,
			quote(kind),
			env.js(unit.p.at("secret")),
			bytes,
		)
	case "generate":
		unit.approximate("RANDOM", "The characters are random, but not fit for passwords and keys.")
		length := env.js(unit.p.at("stringLength"))
		if !unit.p.has("stringLength") {
			length = "32"
		}
		js = fmt.Sprintf("$random(%s, %s)", quote(unit.p.or("encodingType", "uuid")), length)
	default:
		unit.fail("OPERATION", "The operation "+clip(action, 40)+" has no counterpart.")
	}
	field := unit.p.or("dataPropertyName", "data")
	env.emit("code", map[string]any{"code": env.script("return $set($copy($json), " + quote(field) + ", " + js + ")")})
}

// convertGraphQL converts a query to an http-request node.
func convertGraphQL(converter *converter, unit *unit) {
	env := converter.each(unit)
	r := &request{
		e:       env,
		data:    map[string]any{"method": unit.p.or("requestMethod", "POST")},
		headers: map[string]any{},
		query:   map[string]any{},
	}
	r.address(unit.p.text("endpoint"))
	r.pairs(unit.p.objects("headerParametersUi.parameter"), r.headers, "header")
	parts := map[string]any{"query": env.value(unit.p.at("query")), "operationName": nil}
	if v := unit.p.at("variables"); v != nil && v != "" {
		parts["variables"] = env.json(v)
	}
	if unit.p.text("operationName") != "" {
		parts["operationName"] = env.value(unit.p.at("operationName"))
	}
	if r.data["method"] == "GET" {
		r.query["query"] = parts["query"]
	} else {
		r.data["body"] = parts
	}
	if kind := unit.p.or("authentication", "none"); kind != "none" {
		env.attach(r.data, kind)
	}
	for name, values := range map[string]map[string]any{"headers": r.headers, "query": r.query} {
		if len(values) > 0 {
			r.data[name] = values
		}
	}
	stream := env.emit("http-request", r.data)
	if unit.unsupported {
		return
	}
	if unit.p.text("responseFormat") == "string" {
		stream.ref = ref{
			fields: map[string]string{unit.p.or("dataPropertyName", "data"): "nodes." + unit.id + ".body"},
			closed: true,
			js: fmt.Sprintf(
				"({ [%s]: JSON.stringify(nodes[%q]?.body) })",
				quote(unit.p.or("dataPropertyName", "data")),
				unit.id,
			),
		}
		return
	}
	stream.ref = ref{
		path:   "nodes." + unit.id + ".body",
		js:     fmt.Sprintf("nodes[%q]?.body", unit.id),
		object: true,
	}
}

// convertMarked passes the input through: what the node records is only shown in n8n's
// list of executions.
func convertMarked(c *converter, u *unit) {
	u.approximate("OPERATION", "What it notes about the execution is not kept; the input flows on.")
	convertNoOp(c, u)
}

// convertFormPage makes the page that follows a form.
func convertFormPage(converter *converter, unit *unit) {
	if unit.p.or("operation", "page") != "completion" {
		unit.fail(
			"FORM",
			"A form has one page here: put the fields of this one into the trigger, or ask by another workflow.",
		)
		converter.each(unit)
		return
	}
	stream := converter.firstInput(unit)
	if stream.list || stream.at != stream.at.context() {
		stream = converter.firstOf(unit, stream)
	}
	environment := &env{
		c:  converter,
		u:  unit,
		in: stream,
		at: stream.at,
	}
	data := map[string]any{"status": 200.0}
	switch unit.p.or("respondWith", "text") {
	case "redirect":
		data["status"], data["headers"] = 303.0, map[string]any{"Location": environment.textOf("redirectUrl")}
	case "showText":
		data["headers"], data["body"] =
			map[string]any{"Content-Type": "text/html; charset=utf-8"}, environment.textOf("responseText")
	case "text":
		data["body"] = strings.TrimSpace(
			environment.textOf("completionTitle") + "\n\n" + environment.textOf("completionMessage"),
		)
		unit.approximate("PAGE", "The page is plain text, without the form's style.")
	default:
		unit.fail("BINARY", "It shows a file of the item, and items have no files here.")
	}
	environment.emitPassing("webhook-response", data)
}

// convertSendAndWait makes an approval.
func convertSendAndWait(converter *converter, unit *unit) {
	env := converter.each(unit)
	if kind := unit.p.or("responseType", "approval"); kind != "approval" {
		unit.fail("APPROVAL", "A person approves or rejects here; other answers have no counterpart.")
	}
	unit.approximate("APPROVAL", "The person decides in the console, and not in the message.")
	data := map[string]any{"message": env.textOf("message")}
	if title := env.textOf("subject"); title != "" {
		data["title"] = title
	}
	s := env.emit(agent.NodeApproval, data)
	if unit.unsupported {
		return
	}
	s.from = nil
	for _, handle := range []string{"approved", "rejected", "timeout"} {
		s.from = append(s.from, exit{unit.id, handle, env.at})
	}
	s.ref = ref{js: fmt.Sprintf("({ data: { approved: nodes[%q]?.decision === \"approved\" } })", unit.id)}
}

// convertSeen makes a new-items node of items that earlier executions had.
func convertSeen(converter *converter, u *unit) {
	if u.p.or("logic", "removeItemsWithAlreadySeenKeyValues") != "removeItemsWithAlreadySeenKeyValues" {
		u.fail("OPERATION", "What is greater or later than in earlier executions is not known: only what was seen.")
	}
	env, items := converter.whole(u)
	key := env.js(u.p.at("dedupeValue"))
	env.in = &stream{
		from:   env.in.from,
		at:     env.at,
		ref:    ref{js: "$one"},
		guards: env.in.guards,
		same:   env.in.same,
	}
	id := converter.newID(u.id + "_keys")
	code := env.script("return { items: " + items[0] +
		".map((json) => { const $one = json; const $json = json; return { key: $text(" + key + "), json } }) }")
	if u.unsupported {
		converter.keepUnsupported(u)
		return
	}
	u.approximate(
		"SEEN",
		"The newest 100,000 keys are known to this node alone, and what earlier executions in n8n had is new here.",
	)
	converter.addNode(
		u,
		id,
		"code",
		map[string]any{"code": code, "label": u.name + ": keys"},
		env.in.from,
		env.at,
	)
	converter.addNode(
		u,
		u.id,
		"new-items",
		map[string]any{"items": "{{nodes." + id + ".items}}", "key": "key"},
		[]exit{{id, "", env.at}},
		env.at,
	)
	s := listStream(u.id, env.at)
	s.ref = ref{js: fmt.Sprintf("(nodes[%q]?.items ?? []).map(({ json }) => json)", u.id)}
	s.same = append([]*unit{u}, env.in.same...)
	s.guards = env.in.guards
	u.outputs[0] = s
}

// convertCompare makes code that compares two lists, with an output for each of
// the four results.
func convertCompare(converter *converter, u *unit) {
	env, items := converter.whole(u)
	for len(items) < 2 {
		items = append(items, "[]")
	}
	fields := [][2]string{}
	for _, f := range u.p.objects("mergeByFields.values") {
		fields = append(fields, [2]string{f.text("field1"), f.text("field2")})
	}
	resolve := u.p.or("resolve", "preferInput2")
	if u.version >= 2.1 && !u.p.has("resolve") {
		resolve = "includeBoth"
	}
	if resolve == "mix" || u.p.flag("fuzzyCompare") {
		u.approximate("COMPARE", "Values are compared as they are, and items that differ are not mixed.")
	}
	options := map[string]any{
		"resolve":  resolve,
		"skip":     words(u.p.text("options.skipFields")),
		"multiple": u.p.text("options.multipleMatches") == "all",
	}
	env.emit("code", map[string]any{
		"code": env.script(fmt.Sprintf(
			"return $compared(%s, %s, %s, %s)",
			items[0],
			items[1],
			quote(fields),
			quote(options),
		)),
	})
	if u.unsupported {
		return
	}
	for i, name := range []string{"only_a", "same", "different", "only_b"} {
		s := listStream(u.id, env.at)
		s.ref, s.same =
			ref{path: "nodes." + u.id + "." + name, js: fmt.Sprintf("(nodes[%q]?.%s ?? [])", u.id, name)}, []*unit{u}
		u.outputs[i] = s
	}
}
