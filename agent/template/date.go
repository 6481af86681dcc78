package template

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// zoned and local are the accepted layouts of dates. A local one is in the time
// zone of the options.
var (
	zoned = []string{
		time.RFC3339Nano,
		"2006-01-02T15:04Z07:00",
		"2006-01-02 15:04:05Z07:00",
		time.RFC1123Z,
		time.RFC1123,
	}
	local = []string{
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly,
	}
)

// readTime converts a value to a time: a text, or a number of seconds or (from
// 1e11) milliseconds since 1970.
func readTime(value any, zone *time.Location) (time.Time, bool) {
	if zone == nil {
		zone = time.UTC
	}
	var instant time.Time
	switch item := value.(type) {
	case string:
		text := strings.TrimSpace(item)
		if len(text) > 64 {
			return instant, false
		}
		for _, layout := range zoned {
			if parsed, err := time.Parse(layout, text); err == nil {
				return inRange(parsed.In(zone))
			}
		}
		for _, layout := range local {
			if parsed, err := time.ParseInLocation(layout, text, zone); err == nil {
				return inRange(parsed)
			}
		}
		return instant, false
	case float64:
		return epoch(item, zone)
	case int:
		return epoch(float64(item), zone)
	case int64:
		return epoch(float64(item), zone)
	case json.Number:
		f, err := item.Float64()
		if err != nil {
			return instant, false
		}
		return epoch(f, zone)
	}
	return instant, false
}

func epoch(f float64, zone *time.Location) (time.Time, bool) {
	if math.Abs(f) < 1e11 {
		f *= 1000
	}
	if math.IsNaN(f) || math.Abs(f) > 1e15 {
		return time.Time{}, false
	}
	return inRange(time.UnixMilli(int64(f)).In(zone))
}

func inRange(t time.Time) (time.Time, bool) {
	return t, t.Year() >= 0 && t.Year() <= 9999
}

// tokens are the parts of a date format, longer ones first. They are those of
// Moment.js and Day.js: https://day.js.org/docs/en/display/format
var tokens = []struct {
	name  string
	write func(t time.Time) string
}{
	{"YYYY", func(t time.Time) string { return fmt.Sprintf("%04d", t.Year()) }},
	{"YY", func(t time.Time) string { return t.Format("06") }},
	{"MMMM", func(t time.Time) string { return t.Format("January") }},
	{"MMM", func(t time.Time) string { return t.Format("Jan") }},
	{"MM", func(t time.Time) string { return t.Format("01") }},
	{"M", func(t time.Time) string { return t.Format("1") }},
	{"DD", func(t time.Time) string { return t.Format("02") }},
	{"D", func(t time.Time) string { return t.Format("2") }},
	{"dddd", func(t time.Time) string { return t.Format("Monday") }},
	{"ddd", func(t time.Time) string { return t.Format("Mon") }},
	{"d", func(t time.Time) string { return strconv.Itoa(int(t.Weekday())) }},
	{"HH", func(t time.Time) string { return t.Format("15") }},
	{"H", func(t time.Time) string { return strconv.Itoa(t.Hour()) }},
	{"hh", func(t time.Time) string { return t.Format("03") }},
	{"h", func(t time.Time) string { return t.Format("3") }},
	{"mm", func(t time.Time) string { return t.Format("04") }},
	{"m", func(t time.Time) string { return t.Format("4") }},
	{"SSS", func(t time.Time) string { return fmt.Sprintf("%03d", t.Nanosecond()/1e6) }},
	{"ss", func(t time.Time) string { return t.Format("05") }},
	{"s", func(t time.Time) string { return t.Format("5") }},
	{"A", func(t time.Time) string { return t.Format("PM") }},
	{"a", func(t time.Time) string { return t.Format("pm") }},
	{"ZZ", func(t time.Time) string { return t.Format("-0700") }},
	{"Z", func(t time.Time) string { return t.Format("-07:00") }},
	{"X", func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }},
	{"x", func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }},
}

// FormatTime formats t with the tokens YYYY YY MMMM MMM MM M DD D dddd ddd d HH
// H hh h mm m ss s SSS A a ZZ Z X x, with English names. Text in square
// brackets, and characters that are not a token, are copied: "D MMMM YYYY [at]
// HH:mm".
func FormatTime(instant time.Time, format string) string {
	var out strings.Builder
next:
	for len(format) > 0 {
		if end := strings.IndexByte(format, ']'); format[0] == '[' && end > 0 {
			out.WriteString(format[1:end])
			format = format[end+1:]
			continue
		}
		for _, token := range tokens {
			if strings.HasPrefix(format, token.name) {
				out.WriteString(token.write(instant))
				format = format[len(token.name):]
				continue next
			}
		}
		out.WriteByte(format[0])
		format = format[1:]
	}
	return out.String()
}
