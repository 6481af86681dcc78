package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertExtraction makes code that extracts values from HTML by selectors.
func convertExtraction(c *converter, u *unit) {
	e := c.each(u)
	if u.p.text("sourceData") == "binary" {
		u.fail("BINARY", "The HTML is a file of the item, and items have no files here.")
	}
	values, renders := []any{}, false
	for _, v := range u.p.objects("extractionValues.values") {
		how := v.or("returnValue", "text")
		renders = renders || how == "text" && u.version >= 1.2 && shortKind(u.kind) == "html"
		values = append(values, map[string]any{
			"key":           v.text("key"),
			"cssSelector":   e.literal(v.text("cssSelector")),
			"returnValue":   how,
			"attribute":     e.literal(v.text("attribute")),
			"returnArray":   v.flag("returnArray"),
			"skipSelectors": v.text("skipSelectors"),
		})
	}
	if renders {
		u.approximate(
			"TEXT",
			"Texts are those of the elements; n8n also writes links, lists, tables and headings of them as text.",
		)
	}
	trim := true
	if v, ok := u.p.at("options.trimValues").(bool); ok {
		trim = v
	}
	options := quote(map[string]any{"trim": trim, "clean": u.p.flag("options.cleanUpText")})
	name := quote(u.p.or("dataPropertyName", "data"))
	code := fmt.Sprintf(
		"const source = $get($json, %s)\nif (source === undefined) throw new Error(\"No property named "+
			"\" + %s + \" exists!\")\n",
		name,
		name,
	)
	e.emit("code", map[string]any{
		"code": e.script(
			code + fmt.Sprintf(
				"return $extracted(String(Array.isArray(source) ? source[0] : source), %s, %s)",
				quote(values),
				options,
			),
		),
	})
}

// literal returns a parameter that must not contain an expression.
func (e *env) literal(text string) string {
	if strings.HasPrefix(text, "=") && hasExpression(text) {
		e.u.fail("PARAMETER", "A selector is computed.")
	}
	return strings.TrimPrefix(text, "=")
}

// convertMarkdown makes code that converts Markdown to HTML, or HTML to Markdown.
func convertMarkdown(c *converter, u *unit) {
	e := c.each(u)
	js := ""
	if u.p.or("mode", "htmlToMarkdown") == "htmlToMarkdown" {
		js = "$htmlToMarkdown(String(" + e.js(u.p.at("html")) + "))"
		u.approximate(
			"MARKDOWN",
			"The Markdown means the same; its spaces, escapes and marks of lists may differ, and the "+
				"node's options are left out.",
		)
	} else {
		o := u.p.object("options")
		js = fmt.Sprintf(
			"$markdownToHtml(%s, %s)",
			e.js(u.p.at("markdown")),
			quote(map[string]any{
				"tables": o.flag("tables"),
				"breaks": o.flag("simpleLineBreaks"),
				"ids":    !o.flag("noHeaderId"),
				"strike": o.flag("strikethrough"),
			}),
		)
		u.approximate(
			"MARKDOWN",
			"The HTML means the same; its spaces may differ, and further options of the node are left out.",
		)
	}
	e.emit("code", map[string]any{
		"code": e.script("return $set($copy($json), " + quote(u.p.or("destinationKey", "data")) + ", " + js + ")"),
	})
}

// convertXML makes code that converts XML to an object, or an object to XML.
func convertXML(c *converter, u *unit) {
	e := c.each(u)
	name := quote(u.p.or("dataPropertyName", "data"))
	options := map[string]any(u.p.object("options"))
	if options == nil {
		options = map[string]any{}
	}
	if u.p.or("mode", "xmlToJson") == "xmlToJson" {
		code := fmt.Sprintf(
			"if ($json[%s] === undefined) throw new Error(\"Item has no JSON property called \" + %s)\n",
			name, name,
		)
		e.emit("code", map[string]any{
			"code": e.script(code + "return $fromXML($json[" + name + "], " + quote(options) + ")"),
		})
		return
	}
	u.approximate("ORDER", "The elements are in alphabetical order, since fields of items keep no order.")
	e.emit("code", map[string]any{"code": e.script("return { [" + name + "]: $toXML($json, " + quote(options) + ") }")})
}

// convertCrypto makes code that hashes, or generates an identifier.
func convertCrypto(c *converter, u *unit) {
	e := c.each(u)
	js, action := "", u.p.or("action", "hash")
	if u.p.flag("binaryData") {
		u.fail("BINARY", "It hashes a file of the item, and items have no files here.")
	}
	bytes := "$bytes($text(" + e.js(u.p.at("value")) + "))"
	kind := strings.ReplaceAll(u.p.or("type", "MD5"), "-", "")
	if action != "generate" &&
		action != "sign" &&
		kind != "MD5" &&
		kind != "SHA1" &&
		kind != "SHA256" &&
		kind != "SHA384" &&
		kind != "SHA512" {
		u.fail("OPERATION", "The hash "+clip(kind, 40)+" is not known here.")
	}
	encode := "$hex"
	if u.p.text("encoding") == "base64" {
		encode = "$base64"
	}
	switch action {
	case "hash":
		js = fmt.Sprintf("%s($hash(%s, %s))", encode, quote(kind), bytes)
	case "hmac":
		if !strings.HasPrefix(u.p.text("secret"), "=") && u.p.has("secret") {
			u.fail("SECRET", "The key of the signature is a secret that the file of n8n holds; it is not imported.")
		}
		js = fmt.Sprintf(
			"%s($hmac(%s, $bytes($text(%s)), %s))",
			encode,
			quote(kind),
			e.js(u.p.at("secret")),
			bytes,
		)
	case "generate":
		u.approximate("RANDOM", "The characters are random, but not fit for passwords and keys.")
		length := e.js(u.p.at("stringLength"))
		if !u.p.has("stringLength") {
			length = "32"
		}
		js = fmt.Sprintf("$random(%s, %s)", quote(u.p.or("encodingType", "uuid")), length)
	default:
		u.fail("OPERATION", "The operation "+clip(action, 40)+" has no counterpart.")
	}
	field := u.p.or("dataPropertyName", "data")
	e.emit("code", map[string]any{"code": e.script("return $set($copy($json), " + quote(field) + ", " + js + ")")})
}

// convertGraphQL converts a query to an http-request node.
func convertGraphQL(c *converter, u *unit) {
	e := c.each(u)
	r := &request{
		e:       e,
		data:    map[string]any{"method": u.p.or("requestMethod", "POST")},
		headers: map[string]any{},
		query:   map[string]any{},
	}
	r.address(u.p.text("endpoint"))
	r.pairs(u.p.objects("headerParametersUi.parameter"), r.headers, "header")
	parts := map[string]any{"query": e.value(u.p.at("query")), "operationName": nil}
	if v := u.p.at("variables"); v != nil && v != "" {
		parts["variables"] = e.json(v)
	}
	if u.p.text("operationName") != "" {
		parts["operationName"] = e.value(u.p.at("operationName"))
	}
	if r.data["method"] == "GET" {
		r.query["query"] = parts["query"]
	} else {
		r.data["body"] = parts
	}
	if kind := u.p.or("authentication", "none"); kind != "none" {
		e.attach(r.data, kind)
	}
	for name, values := range map[string]map[string]any{"headers": r.headers, "query": r.query} {
		if len(values) > 0 {
			r.data[name] = values
		}
	}
	s := e.emit("http-request", r.data)
	if u.unsupported {
		return
	}
	if u.p.text("responseFormat") == "string" {
		s.ref = ref{
			fields: map[string]string{u.p.or("dataPropertyName", "data"): "nodes." + u.id + ".body"},
			closed: true,
			js: fmt.Sprintf(
				"({ [%s]: JSON.stringify(nodes[%q]?.body) })",
				quote(u.p.or("dataPropertyName", "data")),
				u.id,
			),
		}
		return
	}
	s.ref = ref{
		path:   "nodes." + u.id + ".body",
		js:     fmt.Sprintf("nodes[%q]?.body", u.id),
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
func convertFormPage(c *converter, u *unit) {
	if u.p.or("operation", "page") != "completion" {
		u.fail(
			"FORM",
			"A form has one page here: put the fields of this one into the trigger, or ask by another workflow.",
		)
		c.each(u)
		return
	}
	s := c.firstInput(u)
	if s.list || s.at != s.at.context() {
		s = c.firstOf(u, s)
	}
	e := &env{
		c:  c,
		u:  u,
		in: s,
		at: s.at,
	}
	data := map[string]any{"status": 200.0}
	switch u.p.or("respondWith", "text") {
	case "redirect":
		data["status"], data["headers"] = 303.0, map[string]any{"Location": e.textOf("redirectUrl")}
	case "showText":
		data["headers"], data["body"] =
			map[string]any{"Content-Type": "text/html; charset=utf-8"}, e.textOf("responseText")
	case "text":
		data["body"] = strings.TrimSpace(e.textOf("completionTitle") + "\n\n" + e.textOf("completionMessage"))
		u.approximate("PAGE", "The page is plain text, without the form's style.")
	default:
		u.fail("BINARY", "It shows a file of the item, and items have no files here.")
	}
	e.emitPassing("webhook-response", data)
}

// convertSendAndWait makes an approval.
func convertSendAndWait(c *converter, u *unit) {
	e := c.each(u)
	if kind := u.p.or("responseType", "approval"); kind != "approval" {
		u.fail("APPROVAL", "A person approves or rejects here; other answers have no counterpart.")
	}
	u.approximate("APPROVAL", "The person decides in the console, and not in the message.")
	data := map[string]any{"message": e.textOf("message")}
	if title := e.textOf("subject"); title != "" {
		data["title"] = title
	}
	s := e.emit(agent.NodeApproval, data)
	if u.unsupported {
		return
	}
	s.from = nil
	for _, handle := range []string{"approved", "rejected", "timeout"} {
		s.from = append(s.from, exit{u.id, handle, e.at})
	}
	s.ref = ref{js: fmt.Sprintf("({ data: { approved: nodes[%q]?.decision === \"approved\" } })", u.id)}
}

// convertSeen makes a new-items node of items that earlier executions had.
func convertSeen(c *converter, u *unit) {
	if u.p.or("logic", "removeItemsWithAlreadySeenKeyValues") != "removeItemsWithAlreadySeenKeyValues" {
		u.fail("OPERATION", "What is greater or later than in earlier executions is not known: only what was seen.")
	}
	e, items := c.whole(u)
	key := e.js(u.p.at("dedupeValue"))
	e.in = &stream{
		from:   e.in.from,
		at:     e.at,
		ref:    ref{js: "$one"},
		guards: e.in.guards,
		same:   e.in.same,
	}
	id := c.newID(u.id + "_keys")
	code := e.script("return { items: " + items[0] +
		".map((json) => { const $one = json; const $json = json; return { key: $text(" + key + "), json } }) }")
	if u.unsupported {
		c.keepUnsupported(u)
		return
	}
	u.approximate(
		"SEEN",
		"The newest 100,000 keys are known to this node alone, and what earlier executions in n8n had is new here.",
	)
	c.addNode(
		u,
		id,
		"code",
		map[string]any{"code": code, "label": u.name + ": keys"},
		e.in.from,
		e.at,
	)
	c.addNode(
		u,
		u.id,
		"new-items",
		map[string]any{"items": "{{nodes." + id + ".items}}", "key": "key"},
		[]exit{{id, "", e.at}},
		e.at,
	)
	s := listStream(u.id, e.at)
	s.ref = ref{js: fmt.Sprintf("(nodes[%q]?.items ?? []).map(({ json }) => json)", u.id)}
	s.same = append([]*unit{u}, e.in.same...)
	s.guards = e.in.guards
	u.outputs[0] = s
}

// convertCompare makes code that compares two lists, with an output for each of
// the four results.
func convertCompare(c *converter, u *unit) {
	e, items := c.whole(u)
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
	e.emit("code", map[string]any{
		"code": e.script(fmt.Sprintf(
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
		s := listStream(u.id, e.at)
		s.ref, s.same =
			ref{path: "nodes." + u.id + "." + name, js: fmt.Sprintf("(nodes[%q]?.%s ?? [])", u.id, name)}, []*unit{u}
		u.outputs[i] = s
	}
}
