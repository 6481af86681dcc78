package llm

import (
	"errors"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"satchel/agent"
)

// parameter is a part of a request that some models or servers refuse. A request that is
// refused for one is repeated without it.
type parameter string

// The parameters that can be omitted.
const (
	temperatureParameter   parameter = "temperature"
	stopParameter          parameter = "stop"
	maxTokensParameter     parameter = "max_tokens"
	maxCompletionParameter parameter = "max_completion_tokens"
	schemaParameter        parameter = "response_format" // the prompt has the schema then
	streamOptionsParameter parameter = "stream_options"
	toolChoiceParameter    parameter = "tool_choice"
	toolsParameter         parameter = "tools"
	systemParameter        parameter = "system" // the first user message has the system prompt then
	hiddenParameter        parameter = "hidden" // fields of earlier messages of the turn
)

// omission is the set of parameters that a model does not get.
type omission map[parameter]bool

// refusalPatterns match the errors that refuse a parameter.
var refusalPatterns = map[parameter]func() *regexp.Regexp{
	temperatureParameter:   agent.Pattern(`(?i)\btemperature\b`),
	stopParameter:          agent.Pattern("(?i)[\"'`]stop(_sequences)?[\"'`]|argument not supported[^.]*: stop\\b"),
	maxTokensParameter:     agent.Pattern(`\bmax_tokens\b`),
	maxCompletionParameter: agent.Pattern(`\bmax_completion_tokens\b`),
	schemaParameter: agent.Pattern(
		`(?i)\b(response_format|json_schema|output_config|output_format|structured outputs?)\b`,
	),
	streamOptionsParameter: agent.Pattern(`\bstream_options\b`),
	systemParameter: agent.Pattern(`(?i)\bsystem[ '"]*(role|message|prompt|instruction)?s?\b.{0,40}not ` +
		`(supported|allowed|enabled)|not support .{0,20}\bsystem\b|developer instruction is not ` +
		`enabled|roles must alternate`),
	toolChoiceParameter: agent.Pattern(`\btool_choice\b`),
	toolsParameter: agent.Pattern(`(?i)(not support(ed)?|unsupported|unknown|unrecognized|not permitted|extra).{0,` +
		`80}\b(tools?|function.?call\w*)\b|\b(tools?|function.?call\w*)\b.{0,80}(not support|unsupported|not ` +
		`permitted|unrecognized|extra)|support tool use|auto-tool-choice|requires --jinja`),
}

// refusalOrder is the order in which the patterns are tried: the specific ones first.
var refusalOrder = []parameter{
	streamOptionsParameter, temperatureParameter, schemaParameter, maxTokensParameter, maxCompletionParameter,
	toolChoiceParameter, stopParameter, systemParameter, toolsParameter,
}

// refusedBy returns which of the parameters that a request had its provider refused, ""
// if the error is about something else.
func refusedBy(err error, sent omission, hiddenNames []string) parameter {
	var refused *statusError
	if !errors.As(err, &refused) {
		return ""
	}
	switch refused.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
	case http.StatusNotFound: // OpenRouter: no endpoint supports tools
		sent = omission{toolsParameter: sent[toolsParameter]}
	default:
		return ""
	}
	for _, name := range hiddenNames {
		if sent[hiddenParameter] && strings.Contains(refused.Body, name) {
			return hiddenParameter
		}
	}
	for _, name := range refusalOrder {
		if sent[name] && refusalPatterns[name]().MatchString(refused.Body) {
			return name
		}
	}
	return ""
}

// maxOmissions limits the models whose omissions are remembered.
const maxOmissions = 500

// modelKey identifies a model.
type modelKey struct{ provider, address, name string }

// omissions remembers the parameters that models refused.
type omissions struct {
	mu     sync.Mutex // protects models
	models map[modelKey]omission
}

func (o *omissions) of(m Model) omission {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.models[modelKey{m.Provider, m.Address(), m.Name}]
}

// with returns the omission with one more parameter.
func (o omission) with(name parameter) omission {
	all := omission{name: true}
	maps.Copy(all, o)
	return all
}

// unsupported matches errors that refuse a parameter whatever its value.
var unsupported = agent.Pattern(
	`(?i)unsupported|not support|unrecognized|unknown|not permitted|not allowed|extra|instead`,
)

// add remembers that a model refuses a parameter, unless another value might be accepted.
// Tools are tried again with each request, since an answer without them is another.
func (o *omissions) add(m Model, name parameter, err error) {
	if name == toolsParameter || name == toolChoiceParameter || !unsupported().MatchString(err.Error()) {
		return
	}
	key := modelKey{m.Provider, m.Address(), m.Name}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.models == nil || len(o.models) >= maxOmissions {
		o.models = map[modelKey]omission{}
	}
	o.models[key] = o.models[key].with(name)
}
