package clock

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Cron is a cron expression of five fields: minute, hour, day of the month,
// month, day of the week. The zero Cron never matches; ParseCron returns
// others.
type Cron struct {
	minutes            uint64 // bit n: minute n, and so on
	hours, days        uint32
	months             uint16
	weekdays           uint8 // bit 0: Sunday
	anyDay, anyWeekday bool  // the field is unrestricted
}

// maxCronLength limits a cron expression, in bytes.
const maxCronLength = 200

// cronField describes one field of an expression.
type cronField struct {
	name     string
	min, max int
	names    []string // names for min, min+1, …
}

var cronFields = []cronField{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of the month", min: 1, max: 31},
	{
		name:  "month",
		min:   1,
		max:   12,
		names: strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec"),
	},
	{
		name:  "day of the week",
		min:   0,
		max:   7,
		names: strings.Fields("sun mon tue wed thu fri sat"),
	},
}

// ParseCron parses five space-separated fields. Each is *, a value, a range
// a-b, any of these with a step /n, or a comma-separated list of these. Months
// and days of the week may be written as their first three letters; 0 and 7 are
// Sunday. The text of an error continues a sentence that names the expression,
// such as "has a bad hour".
func ParseCron(expression string) (Cron, error) {
	fields := strings.Fields(expression)
	switch {
	case len(expression) > maxCronLength:
		return Cron{}, errors.New("must have at most " + strconv.Itoa(maxCronLength) + " bytes")
	case len(fields) > 0 && strings.HasPrefix(fields[0], "@"):
		return Cron{}, errors.New(
			"must have five fields; names such as @daily are not supported: write 0 0 * * * instead",
		)
	case len(fields) != len(cronFields):
		return Cron{}, errors.New("must have five fields (minute, hour, day of the month, month, " +
			"day of the week), and has " +
			strconv.Itoa(len(fields)))
	}
	var sets [5]uint64
	for i, f := range cronFields {
		set, issue := f.parse(fields[i])
		if issue != "" {
			return Cron{}, errors.New("has a bad " + f.name + ": " + issue)
		}
		sets[i] = set
	}
	c := Cron{
		minutes:    sets[0],
		hours:      uint32(sets[1]),
		days:       uint32(sets[2]),
		months:     uint16(sets[3]),
		weekdays:   uint8(sets[4]&0x7f | sets[4]>>7),
		anyDay:     isAny(fields[2]),
		anyWeekday: isAny(fields[4]),
	}
	if _, ok := c.nextWallTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return Cron{}, errors.New("matches no date")
	}
	return c, nil
}

// isAny reports whether a field is unrestricted.
func isAny(field string) bool {
	for part := range strings.SplitSeq(field, ",") {
		if part == "*" || part == "*/1" {
			return true
		}
	}
	return false
}

// parse parses a field as a set of numbers. issue is "" if it is valid.
func (f cronField) parse(text string) (set uint64, issue string) {
	for part := range strings.SplitSeq(strings.ToLower(text), ",") {
		values, step, stepped := strings.Cut(part, "/")
		from, to, issue := f.bounds(values, stepped)
		if issue != "" {
			return 0, issue
		}
		n := 1
		if stepped {
			if n = number(step); n < 1 || n > f.max {
				return 0, "a step must be from 1 to " + strconv.Itoa(f.max)
			}
		}
		for v := from; v <= to; v += n {
			set |= 1 << v
		}
	}
	return set, ""
}

// bounds parses *, a value or a range. A single value with a step extends to
// the end of the field.
func (f cronField) bounds(text string, stepped bool) (from, to int, issue string) {
	last := f.max
	if last == 7 {
		last = 6 // Sunday only once
	}
	if text == "*" {
		return f.min, last, ""
	}
	first, second, isRange := strings.Cut(text, "-")
	from, issue = f.value(first)
	if issue != "" {
		return 0, 0, issue
	}
	if !isRange {
		if stepped {
			return from, max(from, last), ""
		}
		return from, from, ""
	}
	to, issue = f.value(second)
	if issue != "" {
		return 0, 0, issue
	}
	if f.max == 7 && to == 0 && from > 0 {
		to = 7 // FRI-SUN
	}
	if from > to {
		return 0, 0, "a range must not end before it begins"
	}
	return from, to, ""
}

func (f cronField) value(text string) (int, string) {
	n := number(text)
	for i, name := range f.names {
		if text == name {
			n = f.min + i
		}
	}
	if n < f.min || n > f.max {
		return 0, "values must be from " + strconv.Itoa(f.min) + " to " + strconv.Itoa(f.max)
	}
	return n, ""
}

// number parses at most three digits, and returns -1 for anything else.
func number(text string) int {
	if text == "" || len(text) > 3 || strings.Trim(text, "0123456789") != "" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// onDay reports whether a date matches. If both day fields are restricted,
// either may match.
func (c Cron) onDay(day int, weekday time.Weekday) bool {
	inMonth, inWeek := c.days>>day&1 == 1, c.weekdays>>weekday&1 == 1
	switch {
	case c.anyDay:
		return inWeek
	case c.anyWeekday:
		return inMonth
	}
	return inMonth || inWeek
}

// cronYears is longer than the longest gap between two matching dates: 29
// February, eight years around 1900 and 2100.
const cronYears = 9

// nextWallTime returns the first wall clock time after instant that matches. Wall clock
// times are represented as times in UTC.
func (c Cron) nextWallTime(instant time.Time) (time.Time, bool) {
	instant = instant.Truncate(time.Minute).Add(time.Minute)
	year, month, day := instant.Date()
	from := instant.Hour()*60 + instant.Minute()
	for last := year + cronYears; year <= last; {
		date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		year, month, day = date.Date()
		if c.months>>month&1 == 0 {
			month, day, from = month+1, 1, 0
			continue
		}
		if c.onDay(day, date.Weekday()) {
			if minute, ok := c.minuteOfDay(from); ok {
				return date.Add(time.Duration(minute) * time.Minute), true
			}
		}
		day, from = day+1, 0
	}
	return time.Time{}, false
}

// minuteOfDay returns the first matching minute of a day at or after from.
func (c Cron) minuteOfDay(from int) (int, bool) {
	hour, minute := from/60, from%60
	if c.hours>>hour&1 == 1 {
		if rest := c.minutes >> minute; rest != 0 {
			return from + bits.TrailingZeros64(rest), true
		}
	}
	if rest := c.hours >> (hour + 1); rest != 0 && c.minutes != 0 {
		return (hour+1+bits.TrailingZeros32(rest))*60 + bits.TrailingZeros64(c.minutes), true
	}
	return 0, false
}

// Next returns the first run after a time, by the wall clock of a zone. A
// skipped wall clock time is shifted by the gap, and a repeated one counts only
// the first time, so that no run is lost or doubled.
func (c Cron) Next(after time.Time, zone *time.Location) time.Time {
	wall := wallBefore(after, zone)
	var best time.Time
	for {
		next, ok := c.nextWallTime(wall)
		if !ok {
			return best
		}
		wall = next
		at, earliest, plain := ToInstant(wall, zone)
		if !best.IsZero() && !earliest.Before(best) {
			return best
		}
		if !at.After(after) {
			continue
		}
		if best.IsZero() || at.Before(best) {
			best = at
		}
		if plain {
			return best
		}
	}
}

// Newest returns the newest runs between two times, both included, oldest
// first, at most limit of them, and whether there are more.
func (c Cron) Newest(from, to time.Time, zone *time.Location, limit int) (runs []time.Time, more bool) {
	for window := time.Hour; ; window *= 24 {
		start, whole := to.Add(-window), false
		if !start.After(from) || window > 1000*24*time.Hour {
			start, whole = from, true
		}
		runs = runs[:0]
		for at := c.Next(start.Add(-1), zone); !at.IsZero() && !at.After(to); at = c.Next(at, zone) {
			if runs = append(runs, at); len(runs) > 2*limit {
				runs, more = append(runs[:0], runs[len(runs)-limit:]...), true
			}
		}
		if len(runs) > limit {
			runs, more = runs[len(runs)-limit:], true
		}
		if len(runs) == limit || whole {
			return runs, more || !whole
		}
	}
}
