package agent

import (
	"encoding/json"
	"fmt"
	"time"
)

// timeLayout is the format of times on the wire and in files: RFC 3339, UTC,
// milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Time is a time in UTC with millisecond precision. It is written as
// timeLayout; the zero Time is written as null.
type Time struct{ time.Time }

// Now returns the current time in milliseconds.
func Now() Time { return At(time.Now()) }

// At converts t to a Time.
func At(t time.Time) Time {
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// String returns t as timeLayout, or "" for the zero Time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return string(t.append(make([]byte, 0, len(timeLayout))))
}

// append appends t as timeLayout. The time package would parse the layout each
// time, and times are a large part of what is written.
func (t Time) append(b []byte) []byte {
	u := t.UTC()
	year, month, day := u.Date()
	if year < 0 || year > 9999 {
		return u.AppendFormat(b, timeLayout)
	}
	hour, minute, second := u.Clock()
	b = append(digits(b, year, 4), '-')
	b = append(digits(b, int(month), 2), '-')
	b = append(digits(b, day, 2), 'T')
	b = append(digits(b, hour, 2), ':')
	b = append(digits(b, minute, 2), ':')
	b = append(digits(b, second, 2), '.')
	return append(digits(b, u.Nanosecond()/int(time.Millisecond), 3), 'Z')
}

// digits appends the last n digits of a number.
func digits(b []byte, number, n int) []byte {
	at := len(b)
	b = append(b, "0000"[:n]...)
	for i := at + n - 1; i >= at; i-- {
		b[i] = byte('0' + number%10)
		number /= 10
	}
	return b
}

// MarshalJSON encodes t as a string, or null if it is zero.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(timeLayout)+2)
	b = append(b, '"')
	b = t.append(b)
	return append(b, '"'), nil
}

// UnmarshalJSON decodes a string that UnmarshalText accepts, or null.
func (t *Time) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s == nil {
		*t = Time{}
		return nil
	}
	return t.UnmarshalText([]byte(*s))
}

// UnmarshalText parses RFC 3339 with any zone and any fraction, or a bare date,
// which is midnight UTC.
func (t *Time) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*t = Time{}
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if parsed, err := time.Parse(layout, s); err == nil {
			if y := parsed.UTC().Year(); y < 0 || y > 9999 {
				break
			}
			*t = At(parsed)
			return nil
		}
	}
	return fmt.Errorf("must be an ISO 8601 time such as 2026-01-31T09:00:00Z")
}

// Scan reads a time from a TEXT column. NULL and "" are the zero Time.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = Time{}
		return nil
	case string:
		return t.UnmarshalText([]byte(v))
	case []byte:
		return t.UnmarshalText(v)
	}
	return fmt.Errorf("cannot read a time from %T", src)
}

// Value writes t for a TEXT column; the zero Time is NULL.
func (t Time) Value() any {
	if t.IsZero() {
		return nil
	}
	return t.String()
}

func unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v)
}
func marshal(v any) ([]byte, error) {
	return json.Marshal(v)
}
