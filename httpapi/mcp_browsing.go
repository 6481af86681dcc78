package httpapi

import (
	"encoding/json"

	"satchel/agent"
	"satchel/agent/mcp"
	"satchel/httpapi/rest"
)

// instructionArguments are the arguments of browser_act and browser_observe.
type instructionArguments struct {
	SessionID   string          `json:"session_id"`
	Instruction string          `json:"instruction"`
	Variables   agent.Variables `json:"variables"`
}

// browseArguments are the arguments of browser_browse.
type browseArguments struct {
	SessionID string `json:"session_id"`
	BrowseID  string `json:"browse_id"`
	agent.BrowseOptions
}

// browseToolWait is how long browser_browse waits for the end, in seconds.
const browseToolWait = 50

const variablesProperty = `"variables":{"type":"object","additionalProperties":{"type":"string"},` +
	`"description":"Values that are typed where the instruction says %name%; the page's model does not see them."}`

// instructionFunctions returns the tools with which a caller instructs a session in
// natural language.
func (s *Server) instructionFunctions(call *rest.Call) []mcp.Function {
	instruction := sessionProperty + `,"instruction":{"type":"string","description":"In words."}`
	return []mcp.Function{
		function(
			"browser_act",
			"Have a language model carry out an instruction on the page, such as: sign in as %user%.",
			`{"type":"object","properties":{`+instruction+`,`+variablesProperty+
				`},"required":["session_id","instruction"]}`,
			false,
			func(in *instructionArguments) (any, error) {
				q := actIn{sessionIn: sessionIn{in.SessionID}}
				q.Body.Instruction, q.Body.Variables = in.Instruction, in.Variables
				return s.actInSession(call, &q)
			},
		),
		function(
			"browser_observe",
			"Have a language model find what can be done on the page for an instruction, without doing it.",
			`{"type":"object","properties":{`+instruction+`},"required":["session_id","instruction"]}`,
			true,
			func(in *instructionArguments) (any, error) {
				q := observeIn{sessionIn: sessionIn{in.SessionID}}
				q.Body.Instruction = in.Instruction
				return s.observeSession(call, &q)
			},
		),
		function(
			"browser_browse",
			"Have a language model browse until it has reached a goal. After 50 seconds the answer has the status "+
				"running: call again with browse_id to wait on.",
			`{"type":"object","properties":{`+sessionProperty+`,"goal":{"type":"string","description":"In words."},`+
				`"url":{"type":"string","description":"Where to begin; the open page without it."},`+
				`"hosts":{"type":"array","items":{"type":"string"},"description":"Where it may go; the domain of `+
				`the first page without it."},"max_steps":{"type":"integer","minimum":1,"maximum":100},`+
				`"output_schema":{"type":"object","description":"JSON Schema of the result."},`+
				`"takeover":{"type":"boolean","description":"Ask for a person when it is stuck."},`+
				variablesProperty+`,"browse_id":{"type":"string","description":"In place of goal: one that runs."}},`+
				`"required":["session_id"]}`,
			false,
			func(in *browseArguments) (any, error) {
				if in.BrowseID != "" {
					return s.getBrowse(call, &getBrowseIn{
						sessionIn{in.SessionID},
						browseID{in.BrowseID},
						browseToolWait,
					})
				}
				return s.startBrowse(call, &browseIn{
					sessionIn: sessionIn{in.SessionID},
					Wait:      browseToolWait,
					Body:      in.BrowseOptions,
				})
			},
		),
	}
}

// extractFunction returns browser_extract, which reads the elements that a selector
// matches, or what an instruction asks for.
func (s *Server) extractFunction(call *rest.Call) mcp.Function {
	return function(
		"browser_extract",
		"Read text, HTML, a value or an attribute of elements of the page, or have a language model read "+
			"what an instruction asks for.",
		`{"type":"object","properties":{`+sessionProperty+`,`+selectorProperty+
			`,"attribute":{"type":"string","description":"text, html, value or the name of an attribute; `+
			`text without it."},"all":{"type":"boolean","description":"Of all elements that match."},`+
			`"instruction":{"type":"string","description":"In words; the selector may then be left out."},`+
			`"schema":{"type":"object","description":"JSON Schema of the value, with an instruction."}},`+
			`"required":["session_id"]}`,
		true,
		func(in *struct {
			browserArguments
			Instruction string          `json:"instruction"`
			Schema      json.RawMessage `json:"schema"`
		}) (any, error) {
			if in.Instruction == "" {
				return s.actInBrowser(call, "extract", &in.browserArguments)
			}
			q := extractIn{sessionIn: sessionIn{in.SessionID}}
			q.Body.Instruction, q.Body.Schema, q.Body.Selector = in.Instruction, in.Schema, in.Selector
			return s.extractFromSession(call, &q)
		},
	)
}
