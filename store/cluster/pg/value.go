package pg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Formats of values.
const (
	textFormat   = 0
	binaryFormat = 1
)

// resultFormats is the format of all columns of results.
var resultFormats = []int16{binaryFormat}

// Types of PostgreSQL.
const (
	typeBool        = 16
	typeBytea       = 17
	typeInt8        = 20
	typeInt4        = 23
	typeText        = 25
	typeFloat8      = 701
	typeTimestamptz = 1184
)

// epoch is the time from which PostgreSQL counts the microseconds of a timestamptz.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// encode returns arguments in the formats of the protocol: numbers as text, which fits
// parameters of all sizes.
func encode(args []any) (values [][]byte, formats []int16, err error) {
	for _, arg := range args {
		var value []byte
		format := int16(binaryFormat)
		switch arg := arg.(type) {
		case string:
			value, format = []byte(arg), textFormat
		case []byte:
			value = arg
		case bool, int, int64, float64:
			value, format = fmt.Append(nil, arg), textFormat
		case time.Time:
			value = binary.BigEndian.AppendUint64(nil, uint64(arg.UnixMicro()-epoch))
		case []string:
			value = encodeArray(typeText, arg)
		case [][]byte:
			value = encodeArray(typeBytea, arg)
		case []int64:
			value, format = encodeInts(arg), textFormat
		default:
			return nil, nil, fmt.Errorf("%T is not a type of arguments", arg)
		}
		values, formats = append(values, value), append(formats, format)
	}
	return values, formats, nil
}

// encodeArray returns an array in binary format: the number of dimensions, whether there
// are nulls, the type of the elements, their number, the first index, and the elements.
func encodeArray[T string | []byte](element uint32, all []T) []byte {
	size := 20
	for _, v := range all {
		size += 4 + len(v)
	}
	b := make([]byte, 0, size)
	for _, n := range []uint32{1, 0, element, uint32(len(all)), 1} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, v := range all {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

func encodeInts(all []int64) []byte {
	b := []byte{'{'}
	for i, n := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, '}')
}

// decode stores a value of a result in the variable that to points to.
func decode(kind uint32, raw []byte, to any) error {
	var count int64
	switch len(raw) {
	case 4:
		count = int64(int32(binary.BigEndian.Uint32(raw)))
	case 8:
		count = int64(binary.BigEndian.Uint64(raw))
	}
	isInt, fits := kind == typeInt4 || kind == typeInt8, false
	switch to := to.(type) {
	case *string:
		*to, fits = string(raw), kind == typeText
	case *[]byte:
		*to, fits = bytes.Clone(raw), kind == typeBytea
	case *bool:
		*to, fits = bytes.Equal(raw, []byte{1}), kind == typeBool
	case *int:
		*to, fits = int(count), isInt
	case *int64:
		*to, fits = count, isInt
	case *float64:
		*to, fits = math.Float64frombits(uint64(count)), kind == typeFloat8
	case *time.Time:
		*to, fits = time.UnixMicro(count+epoch), kind == typeTimestamptz
	case **int64:
		if *to = nil; raw == nil {
			return nil
		}
		v := count // so that count is not allocated
		*to, fits = &v, isInt
	}
	if raw == nil || !fits {
		return fmt.Errorf("a value of type %d (NULL: %t) does not fit %T", kind, raw == nil, to)
	}
	return nil
}
