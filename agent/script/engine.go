package script

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	lib "modernc.org/libquickjs"
)

//go:embed harness.js
var harness string

// The source names, by which a stack trace distinguishes frames of the harness
// from those of the script.
const (
	harnessSource = "<harness>"
	scriptSource  = "<eval>"
)

// host is the Go side of the harness. JavaScript calls its methods.
type host interface {
	log(level, line string) (room bool)
	fetch(r fetchRequest) (problem string)
	variable(r readRequest) (part string)
	done(result string)
	fail(kind, name, message, stack string)
}

// engine is a QuickJS runtime that runs one script at a time. reset prepares it
// for the next.
type engine struct {
	*machine
	run, settle lib.TJSValue
}

func newEngine(host host) (*engine, error) {
	machine, err := newMachine()
	if err != nil {
		return nil, err
	}
	e := &engine{machine: machine}
	machine.define("$log", func(a []any) any {
		return host.log(text(a, 0), text(a, 1))
	})
	machine.define("$done", func(a []any) any {
		host.done(text(a, 0))
		return nil
	})
	machine.define("$fail", func(a []any) any {
		host.fail(
			text(a, 0),
			text(a, 1),
			text(a, 2),
			text(a, 3),
		)
		return nil
	})
	machine.define("$fetch", func(a []any) any {
		return host.fetch(readFetch(a))
	})
	machine.define("$read", func(a []any) any {
		return host.variable(readVariable(a))
	})
	machine.define("$limits", func([]any) any { return limits })
	// The library reads the machine's time zone from a file, once.
	if _, err := machine.eval("new Date().getTimezoneOffset()", harnessSource); err != nil {
		return nil, err
	}
	api, err := machine.eval(harness, harnessSource)
	if err != nil {
		return nil, err
	}
	for name, into := range map[string]*lib.TJSValue{"run": &e.run, "settle": &e.settle} {
		if *into, err = machine.property(api, name); err != nil {
			return nil, err
		}
	}
	machine.save()
	return e, e.reset()
}

// reset restores the engine to its initial state, discarding all changes made
// by scripts.
func (e *engine) reset() error { return e.restore() }

// limits are enforced by the harness itself, in characters.
var limits = fmt.Sprintf(`{"line":%d,"message":%d,"result":%d}`, maxLogLine, maxMessage, MaxResult)

// text returns an argument from JavaScript as a string.
func text(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	s, _ := args[i].(string)
	return s
}

func readFetch(a []any) fetchRequest {
	r := fetchRequest{
		Method:     text(a, 1),
		URL:        text(a, 2),
		Body:       text(a, 4),
		Credential: text(a, 5),
	}
	if len(a) > 0 {
		r.ID, _ = a[0].(int)
	}
	if json.Unmarshal([]byte(text(a, 3)), &r.Headers) != nil {
		r.Headers = nil
	}
	return r
}

func readVariable(a []any) (r readRequest) {
	if len(a) == 4 {
		r.Number, _ = a[0].(int)
		r.Key = text(a, 1)
		r.At, _ = a[2].(int)
		r.Whole, _ = a[3].(bool)
	}
	return r
}

// timed makes a call into the engine that must end by the deadline.
func (e *engine) timed(call func() error) error {
	if e.expired() {
		return errTime
	}
	err := call()
	if e.expired() {
		return errTime
	}
	return err
}

// start compiles the script and, unless it is only checked, runs its first part.
func (e *engine) start(o order, values []byte) error {
	e.limit(o.Memory)
	e.deadline = time.Now().Add(o.Timeout)
	var script lib.TJSValue
	err := e.timed(func() (err error) {
		script, err = e.eval(wrap(o), scriptSource)
		return err
	})
	if err != nil || o.Check {
		return err
	}
	return e.timed(func() error {
		return e.call(e.run, script, string(values))
	})
}

// wrap turns a script into a function whose parameters are its variables. The
// script runs in an inner function, so it may declare variables with the same
// names. Line numbers stay the same.
func wrap(o order) string {
	code := o.Code
	if o.Expression {
		code = "return (" + strings.TrimRight(code, "; \t\r\n") + "\n)"
	}
	return "(function(" + strings.Join(o.Names, ",") + "){return (async function script(){" + code + "\n}).call(this)})"
}

// answer completes a fetch of the script. Call jobs to run the promises that settled.
func (e *engine) answer(head fetchHead, body string) error {
	err := e.timed(func() error {
		return e.call(
			e.settle, head.ID, head.Problem, head.Status, head.StatusText, head.URL, head.headers(), body,
			changedInteger([]byte(body)),
		)
	})
	if errors.Is(err, errTime) || errors.Is(err, errMemory) {
		return err
	}
	return nil // the script broke what its own fetch needs
}

// line returns the first line of the script in a stack trace, or 0. A frame is
// "at name (<eval>:3:7)" or, for a syntax error, "at <eval>:3:7".
func line(stack string) int {
	for frame := range strings.Lines(stack) {
		_, at, ok := strings.Cut(frame, scriptSource+":")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(at, ":")
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
