package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertNoOp replaces a node that does nothing with an edge.
func convertNoOp(c *converter, u *unit) {
	s := c.firstInput(u)
	u.outputs[0] = s
	for _, from := range s.from {
		u.nodeID = from.node
	}
}

func convertWait(c *converter, u *unit) {
	if resume := u.p.or("resume", "timeInterval"); resume == "webhook" || resume == "form" {
		u.fail("WAIT", "Waiting for a call or a form: use an approval, or a wait node with an event.")
	}
	s := c.firstInput(u)
	e := &env{
		c:  c,
		u:  u,
		in: s,
		at: s.at,
	}
	data := map[string]any{}
	if u.p.text("resume") == "specificTime" {
		data["until"] = e.textOf("dateTime")
	} else {
		unit, amount := "hours", 1.0
		if u.version >= 1.1 {
			unit, amount = "seconds", 5.0
		}
		data["unit"] = u.p.or("unit", unit)
		if data["duration"] = e.value(u.p.at("amount")); data["duration"] == nil {
			data["duration"] = amount
		}
		if text, ok := data["duration"].(string); ok {
			if v, ok := literalOf("number", text); ok {
				data["duration"] = v
			}
		}
	}
	e.emitPassing(agent.NodeWait, data)
}

func convertStop(c *converter, u *unit) {
	e := c.each(u)
	message := e.js(u.p.at("errorMessage"))
	if u.p.text("errorType") == "errorObject" {
		message = "JSON.stringify($parsed(" + e.js(u.p.at("errorObject")) + "))"
	}
	e.emit("code", map[string]any{"code": e.script("throw new Error(" + message + ")")})
}

// convertRespond makes a webhook-response node that answers with the first item.
func convertRespond(c *converter, u *unit) {
	s := c.firstInput(u)
	in := s
	if s.list || s.at != s.at.context() {
		if u.p.text("respondWith") == "allIncomingItems" {
			c.respondAll(u, s)
			return
		}
		in = c.firstOf(u, s)
	}
	e := &env{
		c:  c,
		u:  u,
		in: in,
		at: in.at,
	}
	data := map[string]any{"status": e.status()}
	switch with := u.p.or("respondWith", "firstIncomingItem"); with {
	case "firstIncomingItem":
		data["body"] = e.wholeItem()
	case "allIncomingItems":
		data["body"] = []any{e.wholeItem()}
	case "json":
		data["body"] = e.json(u.p.at("responseBody"))
	case "text":
		data["body"] = e.value(u.p.at("responseBody"))
	case "noData":
	case "redirect":
		data["headers"] = map[string]any{"Location": e.textOf("redirectURL")}
		if !u.p.has("options.responseCode") {
			data["status"] = 307.0
		}
	default:
		u.fail("RESPONSE", "Responses with "+clip(with, 40)+" are not supported.")
	}
	if list := u.p.objects("options.responseHeaders.entries"); len(list) > 0 {
		headers, _ := data["headers"].(map[string]any)
		if headers == nil {
			headers = map[string]any{}
		}
		for name, v := range e.object(list) {
			if agent.ResponseHeaderIssue(name, "") != "" {
				u.approximate(
					"RESPONSE_HEADER",
					"The header "+clip(name, 60)+" is left out: workflows may not set it on this server.",
				)
				continue
			}
			headers[name] = v
		}
		data["headers"] = headers
	}
	passed := e.emitPassing("webhook-response", data)
	if in != s && !u.unsupported { // the list flows on
		u.outputs[0] = s
		return
	}
	u.outputs[0] = passed
}

func (e *env) status() any {
	v := e.value(e.u.p.at("options.responseCode"))
	if v == nil || v == "" {
		return 200.0
	}
	return v
}

// wholeItem returns a template for the whole current item.
func (e *env) wholeItem() any {
	if !e.in.list && e.in.ref.path != "" && e.in.ref.fields == nil {
		return "{{" + e.in.ref.path + "}}"
	}
	return e.compute(e.currentItemJS())
}

// respondAll answers with all items.
func (c *converter) respondAll(u *unit, s *stream) {
	e, items := c.whole(u)
	e.emit("webhook-response", map[string]any{"status": e.status(), "body": e.compute(items[0])})
	if !u.unsupported {
		u.outputs[0] = s
	}
}

// convertCall makes a workflow node.
func convertCall(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("source", "database") != "database" {
		u.fail("WORKFLOW", "A workflow that is a parameter, a file or an address: import it as a workflow of its own.")
	}
	id := c.importedWorkflow(u)
	if id == "" {
		u.approximate(
			"WORKFLOW",
			fmt.Sprintf(
				"Choose the workflow to run: the one in n8n is %q. Workflows that are imported "+
					"together keep their connections.",
				clip(workflowName(u), 80),
			),
		)
	}
	data := map[string]any{"workflow_id": id, "wait": true}
	if wait, ok := u.p.at("options.waitForSubWorkflow").(bool); ok {
		data["wait"] = wait
	}
	if values := u.p.object("workflowInputs.value"); len(values) > 0 {
		data["input"] = e.value(map[string]any(values))
	} else {
		data["input"] = e.wholeItem()
	}
	s := e.emit("workflow", data)
	if u.unsupported {
		return
	}
	if data["wait"] == false {
		s.ref, s.same = e.in.ref, append(s.same, e.in.same...)
		return
	}
	s.ref = ref{
		path:   "nodes." + u.id + ".output",
		js:     fmt.Sprintf("(nodes[%q]?.output ?? {})", u.id),
		object: false,
	}
}

func workflowName(u *unit) string {
	object, _ := u.params["workflowId"].(map[string]any)
	if name := params(object).text("cachedResultName"); name != "" {
		return name
	}
	return strings.TrimPrefix(u.p.text("workflowId"), "=")
}
