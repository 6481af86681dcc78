package sqlite

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"

	lib "modernc.org/sqlite/lib"
)

// Rows are the rows of a running statement. After the last one they close
// themselves.
type Rows struct {
	s   *Stmt // nil at the end
	err error
}

// Next moves to the next row, initially the first, and reports whether there is one.
func (r *Rows) Next() bool {
	if r.s == nil {
		return false
	}
	more, err := r.s.Step()
	if !more {
		r.err = err
		r.Close()
	}
	return more
}

// Err returns why the rows ended before the last one.
func (r *Rows) Err() error { return r.err }

// Close ends the rows. It may be called at any time, and twice.
func (r *Rows) Close() {
	if r.s != nil {
		r.s.release()
		r.s = nil
	}
}

// Row is the first row of a statement.
type Row struct {
	rows *Rows
	err  error
}

// Scan copies the row's columns as Rows.Scan does. Without a row, the error is
// ErrNoRows.
func (r Row) Scan(dst ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return ErrNoRows
	}
	return r.rows.Scan(dst...)
}

// RawBytes receives a text or blob without copying it: it is valid until the next
// row.
type RawBytes []byte

// Scanner converts a column: nil, an int64, float64, or a []byte that is valid
// during the call.
type Scanner interface{ Scan(value any) error }

// Scan copies the row's columns to the values that dst points to. It converts only
// without loss: an integer to text, for example, but not text to an integer, and
// NULL only to pointers, byte slices and any. Text is passed to UnmarshalText if the
// type has it, and anything else unchanged to a Scanner.
func (r *Rows) Scan(dst ...any) error {
	if r.s == nil {
		return fmt.Errorf("there is no row")
	}
	if len(dst) != r.s.columns {
		return fmt.Errorf("the row has %d columns, not %d", r.s.columns, len(dst))
	}
	for i, d := range dst {
		if err := r.s.scan(int32(i), d); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

func (s *Stmt) scan(i int32, dst any) error {
	switch kind := lib.Xsqlite3_column_type(s.c.tls, s.p, i); kind {
	case lib.SQLITE_INTEGER:
		return setInteger(dst, lib.Xsqlite3_column_int64(s.c.tls, s.p, i))
	case lib.SQLITE_FLOAT:
		return setFloat(dst, lib.Xsqlite3_column_double(s.c.tls, s.p, i))
	case lib.SQLITE_TEXT:
		return setBytes(dst, s.text(i), true)
	case lib.SQLITE_BLOB:
		return setBytes(dst, s.blob(i), false)
	}
	return setNull(dst)
}

func setInteger(dst any, count int64) error {
	switch value := dst.(type) {
	case *int:
		*value = int(count)
	case *int64:
		*value = count
	case *bool:
		if count != 0 && count != 1 {
			return fmt.Errorf("%d is neither true nor false", count)
		}
		*value = count == 1
	case *float64:
		*value = float64(count)
	case *any:
		*value = count
	case Scanner:
		return value.Scan(count)
	default:
		return setReflected(dst, "an integer", func(v reflect.Value) error {
			return setNumber(v, count)
		})
	}
	return nil
}

// setNumber sets a value whose kind is a number or a string.
func setNumber(value reflect.Value, count int64) error {
	switch value.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if !value.OverflowInt(count) {
			value.SetInt(count)
			return nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if count >= 0 && !value.OverflowUint(uint64(count)) {
			value.SetUint(uint64(count))
			return nil
		}
	case reflect.Float32, reflect.Float64:
		value.SetFloat(float64(count))
		return nil
	case reflect.Bool:
		if count == 0 || count == 1 {
			value.SetBool(count == 1)
			return nil
		}
	case reflect.String:
		value.SetString(strconv.FormatInt(count, 10))
		return nil
	}
	return errOutOfRange
}

func setFloat(dst any, f float64) error {
	switch d := dst.(type) {
	case *float64:
		*d = f
		return nil
	case *any:
		*d = f
		return nil
	case Scanner:
		return d.Scan(f)
	}
	return setReflected(dst, "a float", func(v reflect.Value) error {
		switch {
		case v.Kind() == reflect.String:
			v.SetString(strconv.FormatFloat(f, 'g', -1, 64))
			return nil
		case v.CanFloat():
			v.SetFloat(f)
			return nil
		case f == math.Trunc(f) &&
			math.Abs(f) < 1<<53 &&
			v.Kind() != reflect.Bool:
			return setNumber(v, int64(f))
		}
		return errOutOfRange
	})
}

// setBytes sets dst to a text or blob in SQLite's memory.
func setBytes(dst any, data []byte, isText bool) error {
	switch value := dst.(type) {
	case *string:
		*value = string(data)
	case *[]byte:
		*value = append([]byte{}, data...)
	case *RawBytes:
		*value = data
	case *any:
		if isText {
			*value = string(data)
		} else {
			*value = append([]byte{}, data...)
		}
	case encoding.TextUnmarshaler:
		return value.UnmarshalText(data)
	case Scanner:
		return value.Scan(data)
	default:
		return setReflected(dst, "a text", func(v reflect.Value) error {
			switch {
			case v.Kind() == reflect.String:
				v.SetString(string(data))
				return nil
			case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
				v.SetBytes(append([]byte{}, data...))
				return nil
			}
			return errOutOfRange
		})
	}
	return nil
}

func setNull(dst any) error {
	switch d := dst.(type) {
	case *[]byte:
		*d = nil
		return nil
	case *RawBytes:
		*d = nil
		return nil
	case *any:
		*d = nil
		return nil
	case Scanner:
		return d.Scan(nil)
	}
	v := reflect.ValueOf(dst)
	if v.Kind() == reflect.Pointer &&
		!v.IsNil() &&
		(v.Elem().Kind() == reflect.Pointer || v.Elem().Kind() == reflect.Slice) {
		v.Elem().SetZero()
		return nil
	}
	return fmt.Errorf("cannot read NULL into a %T", dst)
}

// errOutOfRange reports that a type cannot hold a value.
var errOutOfRange = fmt.Errorf("no fit")

// setReflected sets a value of another type that dst points to, allocating it if it is a
// pointer.
func setReflected(dst any, what string, set func(reflect.Value) error) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("cannot read into a %T", dst)
	}
	v = v.Elem()
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if err := set(v); err != nil {
		return fmt.Errorf("cannot read %s into a %T", what, dst)
	}
	return nil
}
