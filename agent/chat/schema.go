package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"satchel/agent"
)

var printer = message.NewPrinter(language.English)

// MaxSchema limits a JSON Schema, in bytes.
const MaxSchema = 64 << 10

// CheckSchema validates a JSON Schema (2020-12) that a client sets for a field.
// References to other documents are rejected.
func CheckSchema(field string, schema json.RawMessage) error {
	if len(schema) > MaxSchema {
		return agent.Invalid(field, "must have at most 65536 bytes")
	}
	if _, err := compile(schema); err != nil {
		return agent.Invalid(field, "must be a valid JSON Schema")
	}
	return nil
}

// CheckArguments validates the arguments of a call against the tool's schema.
// The error names the path, such as arguments.city.
func CheckArguments(schema, arguments json.RawMessage) error {
	if problem := schemaProblem(schema, arguments); problem != "" {
		return agent.Invalid("arguments", problem)
	}
	return nil
}

// CheckObject is CheckArguments for arguments that were decoded from JSON.
func CheckObject(schema json.RawMessage, arguments map[string]any) error {
	if problem := valueProblem(schema, arguments); problem != "" {
		return agent.Invalid("arguments", problem)
	}
	return nil
}

// noLoader rejects references: a schema must be self-contained.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}

// uncheckedPattern matches every text.
type uncheckedPattern string

func (uncheckedPattern) MatchString(string) bool { return true }
func (p uncheckedPattern) String() string        { return string(p) }

// compilePattern compiles a pattern of a schema. JSON Schema has those of ECMA-262; one
// that Go cannot express, such as with look-ahead, is not checked.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(pattern)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		switch wrong.Code {
		case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidCharRange, syntax.ErrInvalidRepeatSize,
			syntax.ErrInvalidNamedCapture:
			return uncheckedPattern(pattern), nil
		}
		return nil, err
	}
	return compiled, err
}

func compile(schema json.RawMessage) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource("schema.json", document); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return nil, err
	}
	return compiled, checkEvaluations(compiled)
}

// maxCompiledSchemas limits the cached schemas, in bytes of their text; compiled they take
// some tens of times as much.
const maxCompiledSchemas = 256 << 10

// schemas caches compiled schemas by their text: each call of a tool needs one,
// and compiling takes longer than validating.
type schemas struct {
	mu             sync.Mutex
	compiledByHash map[[sha256.Size]byte]*jsonschema.Schema
	size           int
}

var compiledSchemas = schemas{compiledByHash: map[[sha256.Size]byte]*jsonschema.Schema{}}

func (s *schemas) compiled(schema json.RawMessage) (*jsonschema.Schema, error) {
	key := sha256.Sum256(schema)
	s.mu.Lock()
	ready := s.compiledByHash[key]
	s.mu.Unlock()
	if ready != nil {
		return ready, nil
	}
	ready, err := compile(schema)
	if err != nil || len(schema) > MaxSchema {
		return ready, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiledByHash[key] != nil {
		return ready, nil
	}
	if s.size += len(schema); s.size > maxCompiledSchemas {
		clear(s.compiledByHash)
		s.size = len(schema)
	}
	s.compiledByHash[key] = ready
	return ready, nil
}

// schemaProblem describes in one line where a value violates a schema, or
// returns "".
func schemaProblem(schema, value json.RawMessage) string {
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return "is not valid JSON"
	}
	return valueProblem(schema, instance)
}

// valueProblem is schemaProblem for a value that was decoded from JSON.
func valueProblem(schema json.RawMessage, value any) string {
	compiled, err := compiledSchemas.compiled(schema)
	if err != nil {
		return "cannot be checked: the schema is not a valid JSON Schema"
	}
	err = compiled.Validate(value)
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return ""
	}
	for len(wrong.Causes) > 0 {
		wrong = wrong.Causes[0]
	}
	place := strings.Join(wrong.InstanceLocation, ".")
	if place != "" {
		place += ": "
	}
	return agent.Clip(place+wrong.ErrorKind.LocalizedString(printer), 300)
}
