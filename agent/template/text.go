package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// Text returns a plain value as written within text: null as nothing, objects
// and lists as JSON, numbers as in JSON and JavaScript.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case float64:
		return number(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return jsonText(value)
}

// number formats numbers like JavaScript: no exponent between 1e-6 and 1e21.
func number(f float64) string {
	if abs := math.Abs(f); f == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return jsonText(f) // 1e-7, not 1e-07
}

// jsonText returns v as JSON on one line, or null if JSON cannot represent it.
func jsonText(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "null"
	}
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

var (
	errSize  = errors.New("the result is too large")
	errDepth = errors.New("the value is nested too deep")
)

// subtractSize subtracts the approximate JSON size of a value from *left. It stops as
// soon as nothing is left, so a huge value costs no more than a large one.
func subtractSize(value any, depth int, remaining *int) error {
	if depth > maxDepth {
		return errDepth
	}
	cost := 8
	switch item := value.(type) {
	case string:
		cost = len(item) + 2
	case json.Number:
		cost = len(item)
	case []any:
		for _, element := range item {
			if err := subtractSize(element, depth+1, remaining); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, element := range item {
			*remaining -= len(key) + 4
			if err := subtractSize(element, depth+1, remaining); err != nil {
				return err
			}
		}
	}
	if *remaining -= cost; *remaining < 0 {
		return errSize
	}
	return nil
}
