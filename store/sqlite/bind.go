package sqlite

import (
	"fmt"
	"reflect"

	lib "modernc.org/sqlite/lib"
)

// Valuer is an argument that returns the value to store: nil, an int64, float64,
// bool, string or []byte.
type Valuer interface{ Value() any }

// argument is a value in the form that SQLite takes.
type argument struct {
	kind    byte // one of the constants below
	integer int64
	float   float64
	text    string
	blob    []byte
}

const (
	null byte = iota
	integer
	float
	text
	blob
)

func (a *argument) set(value any) error {
	switch item := value.(type) {
	case nil:
		*a = argument{}
	case string:
		*a = argument{kind: text, text: item}
	case int:
		*a = argument{kind: integer, integer: int64(item)}
	case int64:
		*a = argument{kind: integer, integer: item}
	case bool:
		*a = argument{kind: integer}
		if item {
			a.integer = 1
		}
	case float64:
		*a = argument{kind: float, float: item}
	case []byte:
		if *a = (argument{}); item != nil {
			*a = argument{kind: blob, blob: item}
		}
	case Valuer:
		if p := reflect.ValueOf(value); p.Kind() == reflect.Pointer && p.IsNil() {
			*a = argument{}
			return nil
		}
		return a.set(item.Value())
	default:
		return a.reflect(reflect.ValueOf(value))
	}
	return nil
}

// reflect sets an argument of a type derived from one that set knows.
func (a *argument) reflect(value reflect.Value) error {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return a.set(nil)
		}
		return a.set(value.Elem().Interface())
	case reflect.String:
		return a.set(value.String())
	case reflect.Bool:
		return a.set(value.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.set(value.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if value.Uint() > 1<<63-1 {
			return fmt.Errorf("%d is too large an integer to store", value.Uint())
		}
		return a.set(int64(value.Uint()))
	case reflect.Float32, reflect.Float64:
		return a.set(value.Float())
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return a.set(value.Bytes())
		}
	}
	return fmt.Errorf("cannot store a %s", value.Type())
}

// length returns how much memory the argument's text or blob takes.
func (a *argument) length() int {
	switch a.kind {
	case text:
		return len(a.text) + 1 // a zero byte after it saves SQLite a copy
	case blob:
		return len(a.blob)
	}
	return 0
}

// Bind sets the statement's parameters.
func (s *Stmt) Bind(args ...any) error {
	if len(args) != s.params {
		return fmt.Errorf("the statement takes %d arguments, but got %d", s.params, len(args))
	}
	if len(args) == 0 {
		return nil
	}
	if s.args == nil {
		s.args = make([]argument, s.params)
	}
	room := 0
	for i, value := range args {
		if err := s.args[i].set(value); err != nil {
			return fmt.Errorf("argument %d: %w", i+1, err)
		}
		if a := &s.args[i]; a.kind == text && s.c.Text != nil {
			a.text = s.c.Text(a.text)
		}
		room += s.args[i].length()
	}
	at, err := s.texts.reserve(s.c.tls, room)
	if err != nil {
		return err
	}
	s.c.beginUse()
	defer s.c.endUse()
	for i := range s.args {
		if rc := s.bind(
			int32(i+1),
			&s.args[i],
			at,
		); rc != lib.SQLITE_OK {
			return s.c.fail(rc)
		}
		at += uintptr(s.args[i].length())
	}
	return nil
}

// bind sets one parameter. It copies a text or blob to the address at.
func (s *Stmt) bind(index int32, argument *argument, at uintptr) int32 {
	const static = 0 // SQLITE_STATIC: the memory stays as it is while it is bound
	tls := s.c.tls
	switch argument.kind {
	case integer:
		return lib.Xsqlite3_bind_int64(tls, s.p, index, argument.integer)
	case float:
		return lib.Xsqlite3_bind_double(tls, s.p, index, argument.float)
	case text:
		putText(at, argument.text)
		return lib.Xsqlite3_bind_text64(
			tls, s.p, index, at,
			uint64(len(argument.text)),
			static,
			lib.SQLITE_UTF8_ZT,
		)
	case blob:
		if len(argument.blob) == 0 {
			return lib.Xsqlite3_bind_zeroblob(tls, s.p, index, 0)
		}
		copy(view(at, len(argument.blob)), argument.blob)
		return lib.Xsqlite3_bind_blob64(tls, s.p, index, at, uint64(len(argument.blob)), static)
	}
	return lib.Xsqlite3_bind_null(tls, s.p, index)
}
