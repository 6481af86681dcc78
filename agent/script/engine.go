package script

import (
	_ "embed"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"modernc.org/quickjs"
)

//go:embed harness.js
var harness string

// harnessLine is put before the line numbers of the harness, so that a stack
// tells its frames from those of the script.
const harnessLine = 1 << 17

// compileHarness makes the bytecode that newEngine takes. It also has the
// engine's library read the machine's time zone, which is a file, once for
// every engine of this process.
func compileHarness() ([]byte, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	if _, err := vm.Eval("new Date().getTimezoneOffset()", quickjs.EvalGlobal); err != nil {
		return nil, err
	}
	return vm.Compile(strings.Repeat("\n", harnessLine)+harness, quickjs.EvalGlobal)
}

// host is the Go side of the harness. Its methods are called by JavaScript.
type host interface {
	log(level, line string) (room bool)
	fetch(r fetchRequest) (problem string)
	variable(r readRequest) (part string, err error)
	done(result string)
	fail(kind, name, message, stack string)
}

// engine is a fresh QuickJS runtime in which one script will run.
type engine struct {
	vm          *quickjs.VM
	run, settle quickjs.Value
	deadline    time.Time
}

func newEngine(bytecode []byte, h host) (*engine, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, err
	}
	e := &engine{vm: vm}
	functions := map[string]quickjs.HostFunc{
		"$log":    func(a []any) (any, error) { return h.log(text(a, 0), text(a, 1)), nil },
		"$done":   func(a []any) (any, error) { h.done(text(a, 0)); return nil, nil },
		"$fail":   func(a []any) (any, error) { h.fail(text(a, 0), text(a, 1), text(a, 2), text(a, 3)); return nil, nil },
		"$fetch":  func(a []any) (any, error) { return h.fetch(readFetch(a)), nil },
		"$read":   func(a []any) (any, error) { return h.variable(readVariable(a)) },
		"$limits": func([]any) (any, error) { return limits, nil },
	}
	for name, f := range functions {
		if err := vm.RegisterHostFunc(name, f); err != nil {
			return nil, err
		}
	}
	api, err := vm.EvalBytecodeValue(bytecode)
	if err != nil {
		return nil, err
	}
	defer api.Free()
	for name, into := range map[string]*quickjs.Value{"run": &e.run, "settle": &e.settle} {
		atom, err := vm.NewAtom(name)
		if err != nil {
			return nil, err
		}
		if *into, err = api.GetPropertyValue(atom); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// limits are what the harness bounds by itself, in characters.
var limits = map[string]any{"line": maxLogLine, "message": maxMessage, "result": MaxResult}

// text is an argument from JavaScript that is a text.
func text(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	s, _ := args[i].(string)
	return s
}

func readFetch(a []any) fetchRequest {
	r := fetchRequest{Method: text(a, 1), URL: text(a, 2), Body: text(a, 4)}
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

// close frees what the engine holds.
func (e *engine) close() {
	e.run.Free()
	e.settle.Free()
	_ = e.vm.Close()
}

// The ways in which a call into an engine ends other than well.
var (
	errTime   = errors.New("script: out of time")
	errMemory = errors.New("script: out of memory")
)

// timed makes a call into the engine that ends by the deadline.
func (e *engine) timed(call func() error) error {
	left := time.Until(e.deadline)
	if left <= 0 {
		return errTime
	}
	_ = e.vm.SetEvalTimeout(left) // never fails
	err := call()
	if time.Until(e.deadline) <= 0 {
		return errTime
	}
	var thrown *quickjs.Error
	if errors.As(err, &thrown) && thrown.Name == "InternalError" {
		switch thrown.Message {
		case "interrupted":
			return errTime
		case outOfMemory:
			return errMemory
		}
	}
	return err
}

// outOfMemory is what QuickJS says when a memory limit is met.
const outOfMemory = "out of memory"

// start compiles the script and runs its first part.
func (e *engine) start(o order, values []byte) error {
	e.vm.SetMemoryLimit(uintptr(o.Memory))
	e.deadline = time.Now().Add(o.Timeout)
	var script quickjs.Value
	err := e.timed(func() (err error) {
		script, err = e.vm.EvalValue(wrap(o), quickjs.EvalGlobal)
		return err
	})
	if err != nil {
		return err
	}
	defer script.Free()
	return e.timed(func() error { return drop(e.run.CallValue(quickjs.UndefinedValue, script, string(values))) })
}

// wrap makes a function of a script whose parameters are its variables. The
// script stands in a function of its own, so that it may declare variables of
// the same names. Its lines keep their numbers.
func wrap(o order) string {
	code := o.Code
	if o.Expression {
		code = "return (" + strings.TrimRight(code, "; \t\r\n") + "\n)"
	}
	return "(function(" + strings.Join(o.Names, ",") + "){return (async function script(){" + code + "\n}).call(this)})"
}

func drop(v quickjs.Value, err error) error {
	if err == nil {
		v.Free()
	}
	return err
}

// jobs runs what promises have made ready, until nothing is left. What a job
// throws has gone to its promise.
func (e *engine) jobs() error {
	for {
		n := 0
		err := e.timed(func() (err error) {
			n, err = e.vm.ExecutePendingJobs()
			return err
		})
		if errors.Is(err, errTime) || errors.Is(err, errMemory) {
			return err
		}
		if n < maxJobs {
			return nil
		}
	}
}

// maxJobs is how many jobs the engine runs at a time.
const maxJobs = 1 << 20

// answer ends a fetch of the script. What that makes ready, jobs runs.
func (e *engine) answer(head fetchHead, body string) error {
	err := e.timed(func() error {
		return drop(e.settle.CallValue(quickjs.UndefinedValue, head.ID, head.Problem, head.Status, head.StatusText, head.URL, head.headers(), body))
	})
	if errors.Is(err, errTime) || errors.Is(err, errMemory) {
		return err
	}
	return nil // the script broke what its own fetch needs
}

// line finds the first line of the script in a stack, 0 when there is none. A
// frame is "at name (<eval>:3:7)" or, of a syntax error, "at <eval>:3:7".
func line(stack string) int {
	for frame := range strings.Lines(stack) {
		_, at, ok := strings.Cut(frame, "<eval>:")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(at, ":")
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n < harnessLine {
			return n
		}
	}
	return 0
}
