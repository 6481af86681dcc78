package flow

import (
	"context"
	"fmt"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/script"
)

func checkCode(data map[string]any) (field, issue string) {
	if code, _ := data["code"].(string); len(code) > script.MaxCode {
		return "data.code", fmt.Sprintf("must have at most %d bytes", script.MaxCode)
	}
	if ms, ok := data["timeout_ms"].(float64); ok && ms > float64(script.MaxTimeout.Milliseconds()) {
		return "data.timeout_ms", fmt.Sprintf("must be at most %d for code", script.MaxTimeout.Milliseconds())
	}
	return "", ""
}

func (engine *Engine) runCode(ctx context.Context, c *Call) (Outcome, error) {
	o, value, err := engine.runScript(ctx, c, c.Text("code"), false)
	o.Output = value
	return o, err
}

// runScript runs JavaScript with the names that templates can use, as far as
// JavaScript allows them as identifiers.
func (engine *Engine) runScript(ctx context.Context, c *Call, code string, expression bool) (Outcome, any, error) {
	result, err := engine.options.Scripts.Run(ctx, c.script(code, expression))
	var o Outcome
	for _, line := range result.Logs {
		o.Logs = append(o.Logs, agent.LogLine{Level: line.Level, Message: line.Message})
	}
	return o, result.Value, err
}

// script builds the script call with the variables that the code mentions.
func (c *Call) script(code string, expression bool) script.Call {
	mentioned, exact := script.Mentioned(code)
	if !exact {
		mentioned = c.Names.all()
	}
	variables := map[string]any{}
	for _, name := range mentioned {
		if v, ok := c.Names.Lookup(name); ok && script.CheckName(name) == "" {
			variables[name] = v
		}
	}
	return script.Call{
		Code:        code,
		Expression:  expression,
		Variables:   variables,
		Timeout:     min(c.Timeout, script.MaxTimeout),
		Owner:       c.DB.ID(),
		BeforeFetch: c.BeforeEffect,
		Credential:  c.findCredential,
	}
}

// findCredential finds a credential that a script names.
func (c *Call) findCredential(ctx context.Context, ref string) (egress.Credential, error) {
	return c.engine.options.Credentials.Find(ctx, c.DB, ref)
}

// truthy reports whether JavaScript treats a decoded JSON value as true.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	}
	return true
}
