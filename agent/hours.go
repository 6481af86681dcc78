package agent

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hours are opening hours within a week. Empty hours are always open.
type Hours []openSpan

// openSpan is a span of one day, in minutes since midnight by the wall clock.
type openSpan struct {
	day      time.Weekday
	from, to int
}

var errHours = errors.New("no hours such as Mon-Fri 09:00-17:00, Sat 10:00-14:00")

// maxSpans limits the number of spans.
const maxSpans = 50

// ParseHours reads hours such as "Mon-Fri 09:00-17:00, Sat 10:00-14:00".
func ParseHours(text string) (Hours, error) {
	var hours Hours
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parts := strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ';' || r == '\n'
	})
	if len(parts) > maxSpans {
		return nil, errHours
	}
	for _, part := range parts {
		days, span, ok := strings.Cut(strings.TrimSpace(part), " ")
		from, to, ranged := strings.Cut(strings.TrimSpace(span), "-")
		first, last, several := strings.Cut(days, "-")
		if !several {
			last = first
		}
		a, b := weekday(first), weekday(last)
		start, end := minuteOf(from), minuteOf(to)
		if !ok || !ranged || a < 0 || b < 0 || start < 0 || end <= start {
			return nil, errHours
		}
		for day := a; ; day = (day + 1) % 7 {
			hours = append(hours, openSpan{time.Weekday(day), start, end})
			if day == b {
				break
			}
		}
	}
	if hours == nil {
		return nil, errHours
	}
	return hours, nil
}

// weekday returns the number of a day by the first letters of its name, or -1 if
// there is no such day.
func weekday(name string) int {
	return slices.Index([]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, strings.ToLower(name))
}

// minuteOf returns the minute of the day for a text such as 09:30, up to 24:00, or
// -1 if the text is not a time.
func minuteOf(text string) int {
	h, m, ok := strings.Cut(strings.TrimSpace(text), ":")
	hour, err := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	at := int(hour)*60 + int(minute)
	if !ok || err != nil || err2 != nil || len(m) != 2 || minute > 59 || at > 24*60 {
		return -1
	}
	return at
}

// Open reports whether a time lies within the hours, by the wall clock of its
// location.
func (h Hours) Open(at time.Time) bool {
	minute := at.Hour()*60 + at.Minute()
	return len(h) == 0 ||
		slices.ContainsFunc(h, func(s openSpan) bool {
			return s.day == at.Weekday() && s.from <= minute && minute < s.to
		})
}

// Next returns when the next span begins after a time, within a week, or zero if
// there are no spans.
func (h Hours) Next(at time.Time) (next time.Time) {
	for days := range 8 {
		for _, s := range h {
			begins := time.Date(at.Year(), at.Month(), at.Day()+days, 0, s.from, 0, 0, at.Location())
			if begins.Weekday() == s.day &&
				begins.After(at) &&
				(next.IsZero() || begins.Before(next)) {
				next = begins
			}
		}
	}
	return next
}
