package flow

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/chat"
	"satchel/agent/template"
)

// OperationKind is the node type operation: it calls an operation of an API.
func OperationKind(a *apis.APIs) *Kind {
	return &Kind{Check: checkOperation, Raw: []string{"api", "operation"}, Run: func(ctx context.Context, c *Call) (Outcome, error) { return c.operation(ctx, a) }}
}

// checkOperation checks what a template must not choose: a stranger's words would
// decide what is called.
func checkOperation(data map[string]any) (field, issue string) {
	for _, name := range []string{"api", "operation"} {
		if text, _ := data[name].(string); strings.Contains(text, "{{") {
			return "data." + name, "must not be a template"
		}
	}
	if _, issue := agent.CredentialRef(data); issue != "" {
		return "data.credential", issue
	}
	if _, err := template.ParsePath(responsePath(data)); err != nil {
		return "data.response_path", err.Error()
	}
	return "", ""
}

func responsePath(data map[string]any) string {
	text, _ := data["response_path"].(string)
	return text
}

func (c *Call) operation(ctx context.Context, a *apis.APIs) (Outcome, error) {
	path, err := template.ParsePath(c.Text("response_path"))
	if err != nil {
		return Outcome{}, agent.Invalid("response_path", err.Error())
	}
	api, o, err := c.DB.Operation(ctx, c.Text("api"), c.Text("operation"))
	if err != nil {
		return Outcome{}, err
	}
	raw, err := json.Marshal(withoutNull(object(c.Data["arguments"])))
	if err != nil {
		return Outcome{}, agent.Invalid("arguments", "must be a JSON object")
	}
	arguments, err := chat.DecodeArguments(o.Parameters, raw)
	if err != nil {
		return Outcome{}, err
	}
	credential, issue := agent.CredentialRef(c.Node.Data)
	if issue != "" {
		return Outcome{}, agent.Invalid("credential", issue)
	}
	req, err := a.Request(ctx, c.DB, &api, &o, apis.Call{Arguments: arguments, Credential: credential, Key: c.Key})
	if err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	resp, err := c.engine.client.Do(req)
	if err != nil {
		return Outcome{}, requestError(ctx, err)
	}
	outcome, err := c.answer(ctx, resp, began)
	if err != nil || len(path) == 0 {
		return outcome, err
	}
	output := outcome.Output.(map[string]any)
	found, ok := path.Walk(output["body"])
	if !ok {
		return Outcome{}, agent.Errorf(agent.CodeUpstream, "the response has no value at %s", c.Text("response_path"))
	}
	output["body"] = found
	return outcome, nil
}

// withoutNull leaves out arguments that are null, as templates make of values that
// are not there.
func withoutNull(arguments map[string]any) map[string]any {
	given := map[string]any{}
	for name, v := range arguments {
		if v != nil {
			given[name] = v
		}
	}
	return given
}
