package script

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// Codes of the errors of Pool.Run, which are *agent.Error. Errors of the script
// itself have details {line}, counted from 1, if it is known.
const (
	CodeSyntax  agent.Code = "SCRIPT_SYNTAX"  // the code is not valid JavaScript
	CodeThrown  agent.Code = "SCRIPT_ERROR"   // the script threw, or recursed too deep
	CodeResult  agent.Code = "SCRIPT_RESULT"  // the result is not JSON, or too large
	CodeStalled agent.Code = "SCRIPT_STALLED" // it waits for a promise that never settles
	CodeTimeout agent.Code = "SCRIPT_TIMEOUT" // it exceeded its time limit
	CodeMemory  agent.Code = "SCRIPT_MEMORY"  // it exceeded its memory limit
	CodeKilled  agent.Code = "SCRIPT_KILLED"  // its process ended for an unknown reason
	CodeBusy    agent.Code = "SCRIPT_BUSY"    // too many scripts are waiting
)

// Limits of a call.
const (
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 60 * time.Second
	MaxMemory      = 128 << 20 // bytes, and the default
	MaxCode        = 1 << 20   // bytes
	MaxVariables   = 16 << 20  // bytes of JSON that a script reads
	MaxResult      = 4 << 20   // bytes of JSON
)

// Limits of a script's console output.
const (
	maxLogLines = 200
	maxLogLine  = 4000 // characters
	maxLogBytes = 64 << 10
)

// maxMessage limits the message of an error, in characters.
const maxMessage = 1000

// Call is one script to run.
type Call struct {
	// Code is the body of an async function or, with Expression, an expression.
	Code       string
	Expression bool
	// Variables are the values that the script sees by name, encodable as JSON.
	// The names in Names always exist, and are undefined unless set.
	Variables map[string]any
	// Timeout is at most MaxTimeout; 0 means DefaultTimeout.
	Timeout time.Duration
	// Memory is in bytes, at most MaxMemory; 0 means MaxMemory.
	Memory int64
	// BeforeFetch, unless nil, is called before each request of the script,
	// possibly concurrently. If it returns an error, the request is not made.
	BeforeFetch func(context.Context) error
	// Credential finds a credential that fetch names; nil: there are none. It
	// is attached outside the script.
	Credential func(ctx context.Context, ref string) (egress.Credential, error)
	// Owner is whom the script belongs to: an agent's id. No owner uses more
	// than half of the pool's processes. Empty means no such limit.
	Owner string
}

// Names are the variables that every script sees in addition to its own.
var Names = []string{"input", "trigger", "nodes", "item", "index", "contact", "message", "args"}

// Result is the result of a script.
type Result struct {
	// Value is the returned value as encoding/json decodes it; nil if there is
	// none.
	Value any
	// Logs are its console lines. They are also set if there is an error,
	// unless the process was killed.
	Logs []Log
	// Sent is how many bytes of its variables it was sent, as JSON.
	Sent int
}

// Log is one line of a script's console.
type Log struct {
	Level   string `json:"level"` // log, info, warn, error or debug
	Message string `json:"message"`
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// reserved are words that cannot be the name of a variable.
const reserved = " arguments async await break case catch class const continue debugger default delete do else enum " +
	"eval export extends false finally for function if implements import in instanceof interface let new null of " +
	"package private protected public return static super switch this throw true try typeof var void while with " +
	"yield undefined NaN Infinity "

// CheckName returns the issue if a name cannot be a script's variable, or "".
// The issue is suitable for agent.Invalid.
func CheckName(name string) (issue string) {
	if len(name) > 100 || !identifier.MatchString(name) || strings.Contains(reserved, " "+name+" ") {
		return "must be a valid JavaScript variable name: letters, digits, _ and $, and not a reserved word"
	}
	return ""
}

// order describes a script for a child. The values of its variables follow in a
// separate frame.
type order struct {
	Code       string
	Expression bool
	Names      []string
	Timeout    time.Duration
	Memory     int64
	Fetch      bool // the script may fetch
	Check      bool // the script is compiled only
}

// prepare validates a call and returns the order and its variables.
func (c Call) prepare(inline int) (order, *variables, error) {
	o := order{
		Code:       c.Code,
		Expression: c.Expression,
		Timeout:    c.Timeout,
		Memory:     c.Memory,
	}
	if len(c.Code) > MaxCode {
		return o, nil, agent.Invalid("code", fmt.Sprintf("must have at most %d bytes", MaxCode))
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Timeout < 0 || o.Timeout > MaxTimeout {
		return o, nil, agent.Invalid("timeout", fmt.Sprintf("must be above 0 and at most %s", MaxTimeout))
	}
	if o.Memory == 0 {
		o.Memory = MaxMemory
	}
	if o.Memory < 1<<20 || o.Memory > MaxMemory {
		return o, nil, agent.Invalid("memory", fmt.Sprintf("must be from 1 to %d MB", MaxMemory>>20))
	}
	list, err := c.values(&o)
	if err != nil {
		return o, nil, err
	}
	v := &variables{inline: inline}
	if v.first, err = v.write(nil, list); err != nil {
		return o, nil, agent.Invalid("variables", "cannot be written as JSON").Because(err)
	}
	if len(v.first) > MaxVariables {
		return o, nil, agent.Invalid("variables", fmt.Sprintf("must have at most %d bytes as JSON", MaxVariables))
	}
	return o, v, nil
}

// values returns the variables' values and sets the names of an order. Names without
// a value come last, which makes them undefined.
func (c Call) values(order *order) ([]any, error) {
	for name := range c.Variables {
		if issue := CheckName(name); issue != "" {
			return nil, agent.Invalid("variables", "name "+agent.Clip(name, 50)+" "+issue)
		}
		order.Names = append(order.Names, name)
	}
	slices.Sort(order.Names)
	list := make([]any, len(order.Names))
	for i, name := range order.Names {
		list[i] = c.Variables[name]
	}
	for _, name := range Names {
		if _, given := c.Variables[name]; !given {
			order.Names = append(order.Names, name)
		}
	}
	return list, nil
}
