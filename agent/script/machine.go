package script

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// machine is a QuickJS runtime with one context and its own heap. It is for use
// by one goroutine.
type machine struct {
	tls          *libc.TLS
	heap         *heap
	runtime, ctx uintptr
	functions    []func(args []any) any
	names        map[string]uintptr
	deadline     time.Time // when running code is interrupted; zero: never
}

// current is the machine of this process. There is only one at a time;
// callbacks from the library find it here.
var current *machine

var errMachine = errors.New("script: the engine does not start")

func newMachine() (*machine, error) {
	m := &machine{tls: libc.NewTLS(), names: map[string]uintptr{}}
	if m.heap = newHeap(m.tls); m.heap == nil {
		return nil, errMachine
	}
	current = m
	if m.runtime = lib.XJS_NewRuntime2(
		m.tls,
		uintptr(unsafe.Pointer(&allocation)),
		0,
	); m.runtime == 0 {
		return nil, errMachine
	}
	if m.ctx = lib.XJS_NewContext(m.tls, m.runtime); m.ctx == 0 {
		return nil, errMachine
	}
	lib.XJS_SetInterruptHandler(m.tls, m.runtime, address(interrupted), 0)
	return m, nil
}

// interrupted is called by the engine periodically. Returning 1 ends the
// running code.
func interrupted(*libc.TLS, uintptr, uintptr) int32 {
	if current.expired() {
		return 1
	}
	return 0
}

func (m *machine) expired() bool {
	return !m.deadline.IsZero() && time.Until(m.deadline) <= 0
}

// save saves the machine for restore.
func (m *machine) save() {
	lib.XJS_RunGC(m.tls, m.runtime)
	m.heap.save()
}

// restore restores the saved machine, except for the sequence of Math.random.
func (m *machine) restore() error {
	err := m.heap.restore()
	(*lib.TJSContext)(at(m.ctx)).Frandom_state = rand.Uint64() | 1
	m.deadline = time.Time{}
	return err
}

// limit limits the memory, in bytes. From a fraction of that on, unused cycles
// are collected.
func (m *machine) limit(memory int64) {
	lib.XJS_SetMemoryLimit(m.tls, m.runtime, lib.Tsize_t(memory))
	lib.XJS_SetGCThreshold(m.tls, m.runtime, lib.Tsize_t(max(512<<10, memory/32)))
}

// name converts one of the program's own names for the library.
func (m *machine) name(s string) uintptr {
	p := m.names[s]
	if p == 0 {
		p, _ = libc.CString(s) // 0 if out of memory
		m.names[s] = p
	}
	return p
}

const valueBytes = unsafe.Sizeof(lib.TJSValue{})

var undefined = lib.TJSValue{Ftag: lib.EJS_TAG_UNDEFINED}

// define makes a Go function a global function of JavaScript. Its arguments are
// strings, integers and booleans, or nil for anything else; its result is a
// string, a boolean, or nil for undefined.
func (m *machine) define(name string, f func(args []any) any) {
	v := lib.XJS_NewCFunction2(
		m.tls,
		m.ctx,
		address(callHost),
		m.name(name),
		0,
		lib.EJS_CFUNC_generic_magic,
		int32(len(m.functions)),
	)
	m.functions = append(m.functions, f)
	global := lib.XJS_GetGlobalObject(m.tls, m.ctx)
	lib.XJS_SetPropertyStr(m.tls, m.ctx, global, m.name(name), v)
	lib.XFreeValue(m.tls, m.ctx, global)
}

// callHost calls the Go function with a number.
func callHost(_ *libc.TLS, _ uintptr, _ lib.TJSValue, count int32, values uintptr, number int32) lib.TJSValue {
	m := current
	args := make([]any, count)
	for i := range args {
		var ok bool
		if args[i], ok = m.read(*(*lib.TJSValue)(at(values + uintptr(i)*valueBytes))); !ok {
			return lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
		}
	}
	result := m.functions[number](args)
	if m.expired() { // catch and finally do not run
		thrown := lib.XJS_ThrowInternalError(m.tls, m.ctx, m.name(interruption), 0)
		lib.XJS_SetUncatchableException(m.tls, m.ctx, 1)
		return thrown
	}
	return m.write(result)
}

// read converts a JavaScript value to Go. If ok is false, an exception is
// pending.
func (m *machine) read(v lib.TJSValue) (value any, ok bool) {
	switch int32(v.Ftag) {
	case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE:
		return m.text(v)
	case lib.EJS_TAG_INT:
		return int(int32(*(*uint64)(unsafe.Pointer(&v)))), true
	case lib.EJS_TAG_BOOL:
		return *(*uint64)(unsafe.Pointer(&v)) != 0, true
	}
	return nil, true
}

// write converts a value to JavaScript. The result may be an exception.
func (m *machine) write(value any) lib.TJSValue {
	switch value := value.(type) {
	case string:
		value = strings.ToValidUTF8(value, "\uFFFD")
		p, err := libc.CString(value)
		if err != nil {
			return lib.XJS_ThrowOutOfMemory(m.tls, m.ctx)
		}
		defer libc.Xfree(m.tls, p)
		return lib.XJS_NewStringLen(m.tls, m.ctx, p, lib.Tsize_t(len(value)))
	case int:
		return lib.XNewInt32(m.tls, m.ctx, int32(value))
	case bool:
		v := lib.TJSValue{Ftag: lib.EJS_TAG_BOOL}
		if value {
			*(*uint64)(unsafe.Pointer(&v)) = 1
		}
		return v
	}
	return undefined
}

// text converts a value to a string, calling its toString.
func (m *machine) text(v lib.TJSValue) (s string, ok bool) {
	const size = int(unsafe.Sizeof(lib.Tsize_t(0)))
	length := m.tls.Alloc(size)
	defer m.tls.Free(size)
	p := lib.XJS_ToCStringLen2(m.tls, m.ctx, length, v, 0)
	if p == 0 {
		return "", false
	}
	defer lib.XJS_FreeCString(m.tls, m.ctx, p)
	return wellFormed(unsafe.Slice((*byte)(at(p)), *(*lib.Tsize_t)(at(length)))), true
}

// wellFormed returns a string of the engine with each unpaired surrogate, which
// the engine encodes as three bytes, replaced by U+FFFD.
func wellFormed(text []byte) string {
	if bytes.IndexByte(text, 0xed) < 0 {
		return string(text)
	}
	text = bytes.Clone(text)
	for i := 0; ; i++ {
		next := bytes.IndexByte(text[i:], 0xed)
		if next < 0 || i+next+2 >= len(text) {
			return string(text)
		}
		if i += next; text[i+1] >= 0xa0 {
			copy(text[i:], "\uFFFD")
		}
	}
}

// eval evaluates global code. source is one of the program's own names.
func (m *machine) eval(code, source string) (lib.TJSValue, error) {
	p, err := libc.CString(code)
	if err != nil {
		return undefined, errMemory
	}
	defer libc.Xfree(m.tls, p)
	return m.result(lib.XJS_Eval(
		m.tls,
		m.ctx,
		p,
		lib.Tsize_t(len(code)),
		m.name(source),
		lib.MJS_EVAL_TYPE_GLOBAL,
	))
}

// property reads a property of an object.
func (m *machine) property(object lib.TJSValue, name string) (lib.TJSValue, error) {
	return m.result(lib.XJS_GetPropertyStr(m.tls, m.ctx, object, m.name(name)))
}

// call calls a function. The arguments are values that write accepts or
// JavaScript values. It frees these and the function's result.
func (m *machine) call(function lib.TJSValue, args ...any) error {
	size := len(args) * int(valueBytes)
	list := m.tls.Alloc(size)
	defer m.tls.Free(size)
	values := unsafe.Slice((*lib.TJSValue)(at(list)), len(args))
	for i, arg := range args {
		v, ok := arg.(lib.TJSValue)
		if !ok {
			v = m.write(arg)
		}
		if _, err := m.result(v); err != nil {
			return err
		}
		values[i] = v
	}
	result, err := m.result(lib.XJS_Call(m.tls, m.ctx, function, undefined, int32(len(args)), list))
	for _, v := range append(values, result) {
		lib.XFreeValue(m.tls, m.ctx, v)
	}
	return err
}

// jobs runs the jobs of settled promises until none are left. An error thrown
// by a job goes to its promise.
func (m *machine) jobs() error {
	const size = int(unsafe.Sizeof(uintptr(0)))
	of := m.tls.Alloc(size)
	defer m.tls.Free(size)
	for {
		ran := lib.XJS_ExecutePendingJob(m.tls, m.runtime, of)
		if ran == 0 {
			return nil
		}
		var err error
		if ran < 0 {
			err = m.exception()
		}
		if m.expired() || errors.Is(err, errTime) {
			return errTime
		}
		if errors.Is(err, errMemory) {
			return err
		}
	}
}

// jsError is an error thrown by JavaScript.
type jsError struct {
	Name, Message, Stack string
	Line                 int // of a syntax error
}

func (e *jsError) Error() string {
	return e.Name + ": " + e.Message
}

// Errors of a call into a machine other than jsError.
var (
	errTime   = errors.New("script: out of time")
	errMemory = errors.New("script: out of memory")
)

// QuickJS's messages for an interruption and for exceeding the memory limit.
const (
	interruption = "interrupted"
	outOfMemory  = "out of memory"
)

// result returns a value, or the error of the exception that it represents.
func (m *machine) result(v lib.TJSValue) (lib.TJSValue, error) {
	if v.Ftag == lib.EJS_TAG_EXCEPTION {
		return undefined, m.exception()
	}
	return v, nil
}

// exception returns and clears the pending exception.
func (m *machine) exception() error {
	value := lib.XJS_GetException(m.tls, m.ctx)
	defer lib.XFreeValue(m.tls, m.ctx, value)
	e := &jsError{}
	e.Name, _ = m.field(value, "name").(string)
	e.Message, _ = m.field(value, "message").(string)
	e.Stack, _ = m.field(value, "stack").(string)
	e.Line, _ = m.field(value, "lineNumber").(int)
	if e.Name == "InternalError" {
		switch e.Message {
		case interruption:
			return errTime
		case outOfMemory:
			return errMemory
		}
	}
	return e
}

// field reads a property. An error thrown by reading it is dropped.
func (m *machine) field(object lib.TJSValue, name string) any {
	v := lib.XJS_GetPropertyStr(m.tls, m.ctx, object, m.name(name))
	defer lib.XFreeValue(m.tls, m.ctx, v)
	value, ok := m.read(v)
	if v.Ftag == lib.EJS_TAG_EXCEPTION || !ok {
		lib.XFreeValue(m.tls, m.ctx, lib.XJS_GetException(m.tls, m.ctx))
	}
	return value
}
