package clock

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxTimesInWords is how many times of day are listed one by one.
const maxTimesInWords = 6

// Words describes in English when a cron expression runs, such as "Monday to
// Friday at 09:00" or "Every 15 minutes".
func (c Cron) Words() string {
	days := c.dayWords()
	if times := c.timesOfDay(); len(times) <= maxTimesInWords {
		if days == "" {
			days = "every day"
		}
		return capitalize(days + " at " + join(times))
	}
	if days == "" {
		return capitalize(c.intervalWords())
	}
	return capitalize(c.intervalWords() + ", " + days)
}

// timesOfDay lists the times of day that the expression names, at most one more
// than maxTimesInWords.
func (c Cron) timesOfDay() (times []string) {
	for minute, ok := c.minuteOfDay(0); ok && len(times) <= maxTimesInWords; minute, ok = c.after(minute) {
		times = append(times, timeOfDay(minute/60, minute%60))
	}
	return times
}

func (c Cron) after(minute int) (int, bool) {
	if minute+1 >= 24*60 {
		return 0, false
	}
	return c.minuteOfDay(minute + 1)
}

func timeOfDay(hour, minute int) string {
	return fmt.Sprintf("%02d:%02d", hour, minute)
}

// intervalWords describes a day with many runs.
func (c Cron) intervalWords() string {
	minutes, hours := members(c.minutes), members(uint64(c.hours))
	minuteStep, hourStep := step(minutes, 60), step(hours, 24)
	first, last := hours[0], hours[len(hours)-1]
	between := " from " + timeOfDay(first, minutes[0]) + " to " + timeOfDay(last, minutes[len(minutes)-1])
	switch {
	case minuteStep > 0 && len(hours) == 24:
		return every(minuteStep, "minute")
	case minuteStep > 0 && contiguous(hours):
		return every(minuteStep, "minute") + between
	case len(minutes) == 1 && hourStep > 0:
		return every(hourStep, "hour") + past(minutes[0])
	case len(minutes) == 1 && contiguous(hours):
		return every(1, "hour") + between
	case len(minutes) == 1:
		return "at " + join(hourWords(hours, minutes[0]))
	case len(hours) == 24:
		return "every hour at minutes " + join(ranges(minutes, strconv.Itoa))
	case minuteStep > 0:
		return every(minuteStep, "minute") + " of hours " + join(ranges(hours, strconv.Itoa))
	}
	return "at minutes " + join(ranges(minutes, strconv.Itoa)) + " of hours " + join(ranges(hours, strconv.Itoa))
}

func hourWords(hours []int, minute int) (times []string) {
	for _, hour := range hours {
		times = append(times, timeOfDay(hour, minute))
	}
	return times
}

func past(minute int) string {
	switch minute {
	case 0:
		return ""
	case 1:
		return ", 1 minute past"
	}
	return ", " + strconv.Itoa(minute) + " minutes past"
}

func every(n int, unit string) string {
	if n == 1 {
		return "every " + unit
	}
	return "every " + strconv.Itoa(n) + " " + unit + "s"
}

// dayWords describes the days with runs; "" means all days.
func (c Cron) dayWords() string {
	var parts []string
	months := ""
	if c.months != 0x1ffe {
		months = join(ranges(members(uint64(c.months)), func(n int) string {
			return time.Month(n).String()
		}))
	}
	if !c.anyDay {
		of := " of the month"
		if months != "" {
			of, months = " of "+months, ""
		}
		parts = append(parts, "on the "+join(ranges(members(uint64(c.days)), ordinal))+of)
	}
	if !c.anyWeekday && c.weekdays != 0x7f {
		parts = append(parts, weekdayWords(c.weekdays))
	}
	words := strings.Join(parts, " and ")
	switch {
	case months == "":
		return words
	case words == "":
		return "every day in " + months
	}
	return words + " in " + months
}

// weekdayWords names days of the week from Monday on.
func weekdayWords(set uint8) string {
	var days []int
	for i := range 7 {
		if day := (i + 1) % 7; set>>day&1 == 1 {
			days = append(days, i)
		}
	}
	words := join(ranges(days, func(i int) string {
		return time.Weekday((i + 1) % 7).String()
	}))
	if strings.Contains(words, " to ") {
		return words
	}
	return "every " + words
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n != 11:
		return strconv.Itoa(n) + "st"
	case n%10 == 2 && n != 12:
		return strconv.Itoa(n) + "nd"
	case n%10 == 3 && n != 13:
		return strconv.Itoa(n) + "rd"
	}
	return strconv.Itoa(n) + "th"
}

// members lists the numbers of a set.
func members(set uint64) (list []int) {
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// step returns n if a list is 0, n, 2n and so on below limit, which n divides, and
// 0 otherwise.
func step(list []int, limit int) int {
	n := limit / len(list)
	if len(list) == 1 || n*len(list) != limit || list[0] != 0 {
		return 0
	}
	for i, v := range list {
		if v != i*n {
			return 0
		}
	}
	return n
}

func contiguous(list []int) bool {
	return list[len(list)-1]-list[0] == len(list)-1
}

// ranges formats a list of numbers, with runs of three or more as "first to last".
func ranges(list []int, name func(int) string) (out []string) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[n-1]+1 {
			n++
		}
		if n < 3 {
			out, list = append(out, name(list[0])), list[1:]
			continue
		}
		out, list = append(out, name(list[0])+" to "+name(list[n-1])), slices.Delete(list, 0, n)
	}
	return out
}

// join writes a list as people do: a, b and c.
func join(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func capitalize(text string) string {
	return strings.ToUpper(text[:1]) + text[1:]
}
