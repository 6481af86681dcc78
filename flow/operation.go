package flow

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/apis"
	"satchel/agent/chat"
	"satchel/agent/template"
)

// OperationKind returns the node type operation, which calls an operation of an API.
func OperationKind(a *apis.APIs) *Kind {
	return &Kind{
		Check: checkOperation,
		Raw:   []string{"api", "operation"},
		Run: func(ctx context.Context, c *Call) (Outcome, error) {
			return c.operation(ctx, a)
		},
	}
}

// checkOperation rejects templates in fields that determine what is called: untrusted
// input must not choose it. It also checks the response path.
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

func (c *Call) operation(ctx context.Context, is *apis.APIs) (Outcome, error) {
	path, err := template.ParsePath(c.Text("response_path"))
	if err != nil {
		return Outcome{}, agent.Invalid("response_path", err.Error())
	}
	api, definition, err := c.DB.Operation(ctx, c.Text("api"), c.Text("operation"))
	if err != nil {
		return Outcome{}, err
	}
	arguments, err := decoded(withoutNull(object(c.Data["arguments"])))
	if err != nil {
		return Outcome{}, err
	}
	if err := chat.CheckObject(definition.Parameters, arguments); err != nil {
		return Outcome{}, err
	}
	credential, issue := agent.CredentialRef(c.Node.Data)
	if issue != "" {
		return Outcome{}, agent.Invalid("credential", issue)
	}
	req, err := is.Request(ctx, c.DB, &api, &definition, apis.Call{
		Arguments:  arguments,
		Credential: credential,
		Key:        c.Key,
	})
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

// withoutNull drops arguments that are null, since templates of missing values yield
// null.
func withoutNull(arguments map[string]any) map[string]any {
	given := map[string]any{}
	for name, v := range arguments {
		if v != nil {
			given[name] = v
		}
	}
	return given
}

// decoded returns arguments in the form in which JSON is decoded. For most nodes they
// already have it.
func decoded(arguments map[string]any) (map[string]any, error) {
	if isDecoded(arguments) {
		return arguments, nil
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return nil, agent.Invalid("arguments", "must be a JSON object")
	}
	return object(decodeOr(raw)), nil
}

// isDecoded reports whether a value consists only of types that decoding JSON with
// json.Number yields.
func isDecoded(value any) bool {
	switch item := value.(type) {
	case nil, bool, json.Number:
		return true
	case string:
		return utf8.ValidString(item)
	case []any:
		return !slices.ContainsFunc(item, func(entry any) bool {
			return !isDecoded(entry)
		})
	case map[string]any:
		for name, entry := range item {
			if !utf8.ValidString(name) || !isDecoded(entry) {
				return false
			}
		}
		return true
	}
	return false
}
