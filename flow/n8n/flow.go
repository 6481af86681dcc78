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

func convertWait(converter *converter, u *unit) {
	if resume := u.p.or("resume", "timeInterval"); resume == "webhook" || resume == "form" {
		u.fail("WAIT", "Waiting for a call or a form: use an approval, or a wait node with an event.")
	}
	stream := converter.firstInput(u)
	environment := &env{
		c:  converter,
		u:  u,
		in: stream,
		at: stream.at,
	}
	data := map[string]any{}
	if u.p.text("resume") == "specificTime" {
		data["until"] = environment.textOf("dateTime")
	} else {
		unit, amount := "hours", 1.0
		if u.version >= 1.1 {
			unit, amount = "seconds", 5.0
		}
		data["unit"] = u.p.or("unit", unit)
		if data["duration"] = environment.value(u.p.at("amount")); data["duration"] == nil {
			data["duration"] = amount
		}
		if text, ok := data["duration"].(string); ok {
			if v, ok := literalOf("number", text); ok {
				data["duration"] = v
			}
		}
	}
	environment.emitPassing(agent.NodeWait, data)
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
func convertRespond(converter *converter, unit *unit) {
	stream := converter.firstInput(unit)
	in := stream
	if stream.list || stream.at != stream.at.context() {
		if unit.p.text("respondWith") == "allIncomingItems" {
			converter.respondAll(unit, stream)
			return
		}
		in = converter.firstOf(unit, stream)
	}
	environment := &env{
		c:  converter,
		u:  unit,
		in: in,
		at: in.at,
	}
	data := map[string]any{"status": environment.status()}
	switch with := unit.p.or("respondWith", "firstIncomingItem"); with {
	case "firstIncomingItem":
		data["body"] = environment.wholeItem()
	case "allIncomingItems":
		data["body"] = []any{environment.wholeItem()}
	case "json":
		data["body"] = environment.json(unit.p.at("responseBody"))
	case "text":
		data["body"] = environment.value(unit.p.at("responseBody"))
	case "noData":
	case "redirect":
		data["headers"] = map[string]any{"Location": environment.textOf("redirectURL")}
		if !unit.p.has("options.responseCode") {
			data["status"] = 307.0
		}
	default:
		unit.fail("RESPONSE", "Responses with "+clip(with, 40)+" are not supported.")
	}
	if list := unit.p.objects("options.responseHeaders.entries"); len(list) > 0 {
		headers, _ := data["headers"].(map[string]any)
		if headers == nil {
			headers = map[string]any{}
		}
		for name, v := range environment.object(list) {
			if agent.ResponseHeaderIssue(name, "") != "" {
				unit.approximate(
					"RESPONSE_HEADER",
					"The header "+clip(name, 60)+" is left out: workflows may not set it on this server.",
				)
				continue
			}
			headers[name] = v
		}
		data["headers"] = headers
	}
	passed := environment.emitPassing("webhook-response", data)
	if in != stream && !unit.unsupported { // the list flows on
		unit.outputs[0] = stream
		return
	}
	unit.outputs[0] = passed
}

func (env *env) status() any {
	v := env.value(env.u.p.at("options.responseCode"))
	if v == nil || v == "" {
		return 200.0
	}
	return v
}

// wholeItem returns a template for the whole current item.
func (env *env) wholeItem() any {
	if !env.in.list && env.in.ref.path != "" && env.in.ref.fields == nil {
		return "{{" + env.in.ref.path + "}}"
	}
	return env.compute(env.currentItemJS())
}

// respondAll answers with all items.
func (converter *converter) respondAll(u *unit, s *stream) {
	e, items := converter.whole(u)
	e.emit("webhook-response", map[string]any{"status": e.status(), "body": e.compute(items[0])})
	if !u.unsupported {
		u.outputs[0] = s
	}
}

// convertCall makes a workflow node.
func convertCall(converter *converter, unit *unit) {
	env := converter.each(unit)
	if unit.p.or("source", "database") != "database" {
		unit.fail(
			"WORKFLOW",
			"A workflow that is a parameter, a file or an address: import it as a workflow of its own.",
		)
	}
	id := converter.importedWorkflow(unit)
	if id == "" {
		unit.approximate(
			"WORKFLOW",
			fmt.Sprintf(
				"Choose the workflow to run: the one in n8n is %q. Workflows that are imported "+
					"together keep their connections.",
				clip(workflowName(unit), 80),
			),
		)
	}
	data := map[string]any{"workflow_id": id, "wait": true}
	if wait, ok := unit.p.at("options.waitForSubWorkflow").(bool); ok {
		data["wait"] = wait
	}
	if values := unit.p.object("workflowInputs.value"); len(values) > 0 {
		data["input"] = env.value(map[string]any(values))
	} else {
		data["input"] = env.wholeItem()
	}
	s := env.emit("workflow", data)
	if unit.unsupported {
		return
	}
	if data["wait"] == false {
		s.ref, s.same = env.in.ref, append(s.same, env.in.same...)
		return
	}
	s.ref = ref{
		path:   "nodes." + unit.id + ".output",
		js:     fmt.Sprintf("(nodes[%q]?.output ?? {})", unit.id),
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
