package schedule

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/clock"
)

// Feed writes a calendar as iCalendar (RFC 5545), one task after another.
type Feed struct {
	w     *bufio.Writer
	zones map[string]bool // zones already described
	until time.Time       // up to when zones are described
}

// feedYears is how many years ahead the clock changes of a zone are described.
const feedYears = 10

// NewFeed starts a calendar with this name on w. Close ends it.
func NewFeed(w io.Writer, name string, now time.Time) *Feed {
	f := &Feed{
		w:     bufio.NewWriter(w),
		zones: map[string]bool{},
		until: now.AddDate(feedYears, 0, 0),
	}
	f.line("BEGIN", "VCALENDAR")
	f.line("VERSION", "2.0")
	f.line("PRODID", "-//Satchel//Calendar//EN")
	f.line("CALSCALE", "GREGORIAN")
	f.line("X-WR-CALNAME", escape(name))
	return f
}

// Close ends the calendar and returns the first write error.
func (f *Feed) Close() error {
	f.line("END", "VCALENDAR")
	return f.w.Flush()
}

// line writes one property, folded after 75 bytes as section 3.1 requires.
func (f *Feed) line(name, value string) {
	text, room := name+":"+value, 75
	for len(text) > room {
		cut := room
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		_, _ = f.w.WriteString(text[:cut] + "\r\n ") // an error persists until Flush
		text, room = text[cut:], 74
	}
	_, _ = f.w.WriteString(text + "\r\n")
}

// escape escapes a text value, see section 3.3.11.
func escape(text string) string {
	text = strings.NewReplacer(
		"\\", "\\\\", ";", "\\;", ",", "\\,", "\r\n", "\\n", "\n", "\\n", "\r", "\\n",
	).Replace(text)
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

const (
	utcTime  = "20060102T150405Z"
	wallTime = "20060102T150405"
)

// Add writes a task as an event that starts with its first occurrence: many
// readers treat the start as an occurrence, whatever the rule says. Occurrences
// that differ are events of their own, see section 3.8.4.4.
func (f *Feed) Add(task agent.Task) {
	zone, err := clock.Zone(task.Timezone)
	regular := task
	regular.Exceptions = nil
	first := regular.Occurrences(agent.Time{}, agent.Time{}, 1)
	if err != nil || len(first) == 0 {
		return
	}
	start := first[0].StartTime.In(zone)
	if task.Timezone != "UTC" {
		f.writeZone(task.Timezone, zone, start)
	}
	f.event(regular, first[0], zone, func() {
		if rule := recurrenceRule(&regular, start); rule != "" {
			f.line("RRULE", rule)
		}
		for _, e := range task.Exceptions {
			if e.Cancelled {
				f.at("EXDATE", task.Timezone, e.OriginalStart.In(zone))
			}
		}
	})
	for _, e := range task.Exceptions {
		if o, err := task.Occurrence(e.OriginalStart); err == nil && !e.Cancelled {
			f.event(task.WithOccurrence(o), o, zone, func() {
				f.at("RECURRENCE-ID", task.Timezone, o.OriginalStart.In(zone))
			})
		}
	}
}

// event writes an event at the time of an occurrence. recurrence writes its
// properties about recurrence.
func (f *Feed) event(task agent.Task, occurrence agent.Occurrence, zone *time.Location, recurrence func()) {
	f.line("BEGIN", "VEVENT")
	f.line("UID", task.ID+"@satchel")
	f.line("DTSTAMP", task.UpdatedAt.Format(utcTime))
	f.at("DTSTART", task.Timezone, occurrence.StartTime.In(zone))
	f.at("DTEND", task.Timezone, occurrence.EndTime.In(zone))
	recurrence()
	f.line("SUMMARY", escape(task.Title))
	if task.Description != "" {
		f.line("DESCRIPTION", escape(task.Description))
	}
	if task.Status == agent.TaskCancelled {
		f.line("STATUS", "CANCELLED")
	} else {
		f.line("STATUS", "CONFIRMED")
	}
	f.line("END", "VEVENT")
}

func (f *Feed) at(name, zone string, at time.Time) {
	if zone == "UTC" {
		f.line(name, at.UTC().Format(utcTime))
	} else {
		f.line(name+";TZID="+zone, at.Format(wallTime))
	}
}

var feedDays = [7]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}

// recurrenceRule returns the recurrence rule of a task, see section 3.3.10, or "".
func recurrenceRule(task *agent.Task, start time.Time) string {
	var parts []string
	switch task.Recurrence {
	case agent.RecurDaily:
		parts = []string{"FREQ=DAILY"}
	case agent.RecurWeekly:
		days := []string{feedDays[start.Weekday()]}
		if len(task.RecurrenceDays) > 0 {
			days = nil
			for _, day := range slices.Sorted(slices.Values(task.RecurrenceDays)) {
				days = append(days, feedDays[day])
			}
		}
		parts = []string{"FREQ=WEEKLY", "BYDAY=" + strings.Join(days, ",")}
	case agent.RecurMonthly:
		days := []string{strconv.Itoa(start.Day())}
		if len(task.RecurrenceDays) > 0 {
			days = nil
			for _, day := range task.RecurrenceDays {
				days = append(days, strconv.Itoa(day))
			}
		}
		parts = []string{"FREQ=MONTHLY", "BYMONTHDAY=" + strings.Join(days, ",")}
	default:
		return ""
	}
	// A rule may have only one of the two, see section 3.3.10.
	switch {
	case task.RecurrenceCount > 0 && task.RecurrenceEnd.IsZero():
		parts = append(parts, "COUNT="+strconv.Itoa(task.RecurrenceCount))
	case task.RecurrenceCount > 0:
		parts = append(
			parts,
			"COUNT="+strconv.Itoa(len(task.Occurrences(agent.Time{}, agent.Time{}, task.RecurrenceCount))),
		)
	case !task.RecurrenceEnd.IsZero():
		parts = append(parts, "UNTIL="+task.RecurrenceEnd.Format(utcTime))
	}
	return strings.Join(parts, ";")
}

// writeZone writes a zone once: its offset from a year before the first event
// that needs it, and every clock change for some years.
func (f *Feed) writeZone(name string, zone *time.Location, from time.Time) {
	if f.zones[name] {
		return
	}
	f.zones[name] = true
	f.line("BEGIN", "VTIMEZONE")
	f.line("TZID", name)
	at := time.Date(min(from.Year(), f.until.Year()-feedYears)-1, 1, 1, 0, 0, 0, 0, time.UTC).In(zone)
	_, before := at.Zone()
	f.writeOffset(at, before)
	for {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(f.until) {
			break
		}
		_, before := at.Zone()
		at = end
		f.writeOffset(at, before)
	}
	f.line("END", "VTIMEZONE")
}

// writeOffset writes the offset of a zone that applies from a time on. before is the
// previous offset, in seconds.
func (f *Feed) writeOffset(at time.Time, before int) {
	kind := "STANDARD"
	if at.IsDST() {
		kind = "DAYLIGHT"
	}
	name, after := at.Zone()
	f.line("BEGIN", kind)
	f.line("DTSTART", at.UTC().Add(time.Duration(before)*time.Second).Format(wallTime))
	f.line("TZOFFSETFROM", utcOffset(before))
	f.line("TZOFFSETTO", utcOffset(after))
	f.line("TZNAME", name)
	f.line("END", kind)
}

func utcOffset(seconds int) string {
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	text := fmt.Sprintf("%s%02d%02d", sign, seconds/3600, seconds/60%60)
	if rest := seconds % 60; rest != 0 {
		text += fmt.Sprintf("%02d", rest)
	}
	return text
}
