package agent

import (
	"strconv"
	"strings"
	"time"

	"satchel/agent/clock"
)

// Words describes in English when a valid schedule runs.
func (s *Schedule) Words() string {
	switch s.Type {
	case ScheduleCron:
		cron, err := clock.ParseCron(s.CronExpression)
		if err != nil {
			return "" // put there by SQL
		}
		return cron.Words()
	case ScheduleDelayed:
		return "Once, after " + durationWords(s.DelaySeconds)
	}
	return "Once"
}

// durationWords writes seconds in days, hours, minutes and seconds.
func durationWords(seconds int) string {
	var parts []string
	for _, unit := range []struct {
		name    string
		seconds int
	}{{"day", 86_400}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		n := seconds / unit.seconds
		seconds -= n * unit.seconds
		switch {
		case n == 1:
			parts = append(parts, "1 "+unit.name)
		case n > 1:
			parts = append(parts, strconv.Itoa(n)+" "+unit.name+"s")
		}
	}
	return strings.Join(parts, " ")
}

// Preview checks the timing of a schedule after Fill and returns its first runs
// after now, at most count.
func (s *Schedule) Preview(now Time, count int) ([]Time, error) {
	var is Issues
	s.checkTiming(&is)
	if err := is.Err(); err != nil {
		return nil, err
	}
	if s.Type == ScheduleOnce {
		return []Time{s.NextRun}, s.checkOnce(true, now)
	}
	if err := s.planNext(now); err != nil {
		return nil, err
	}
	runs := []Time{s.NextRun}
	if s.Type == ScheduleDelayed {
		return runs, nil
	}
	cron, zone, err := s.cron()
	for len(runs) < count && err == nil {
		runs = append(runs, At(cron.Next(runs[len(runs)-1].Time, zone)))
	}
	return runs, err
}

// ScheduleDay is what a schedule did or will do on one day.
type ScheduleDay struct {
	ScheduleID string `json:"schedule_id" example:"schedule-06f1q2s3t4v5a6b7c8d9"`
	Name       string `json:"name" example:"Morning report"`
	Date       string `json:"date" format:"date" doc:"A day in the agent's time zone." example:"2027-01-04"`
	First      Time   `json:"first" format:"date-time" doc:"The first run of the day."`
	Runs       int    `json:"runs" doc:"Past runs, including missed and skipped ones." example:"1"`
	Failed     int    `json:"failed" doc:"Past runs that failed." example:"0"`
	Missed     int    `json:"missed" doc:"Past runs that were missed." example:"0"`
	Running    int    `json:"running" doc:"Runs in progress." example:"0"`
	Planned    int    `json:"planned" doc:"Planned runs, counted up to 50." example:"0"`
}

// maxPlannedRuns is the number up to which a schedule's upcoming runs on one day
// are counted.
const maxPlannedRuns = 50

// Planned returns the first upcoming run of an active schedule on each day, and
// the number of runs up to maxPlannedRuns, by the day's index. days holds the
// start of each day and the end of the last one. Days without runs are absent
// from the result.
func (s *Schedule) Planned(days []Time) map[int]ScheduleDay {
	planned := map[int]ScheduleDay{}
	if s.Status != ScheduleActive || s.NextRun.IsZero() {
		return planned
	}
	next := s.nextAfter()
	at := s.NextRun
	if at.Before(days[0].Time) {
		at = next(days[0].Add(-time.Millisecond))
	}
	for day := 0; day+1 < len(days) && !at.IsZero(); {
		end := days[day+1]
		if !at.Before(end.Time) {
			day++
			continue
		}
		p := planned[day]
		if p.Planned++; p.Planned == 1 {
			p.First = at
		}
		planned[day] = p
		after := at.Time
		if p.Planned == maxPlannedRuns {
			after = end.Add(-time.Millisecond)
		}
		at = next(after)
	}
	return planned
}

// nextAfter returns a function that returns the first run after a time by the cron
// expression, or zero for other schedules.
func (s *Schedule) nextAfter() func(time.Time) Time {
	cron, zone, err := s.cron()
	if s.Type != ScheduleCron || err != nil {
		return func(time.Time) Time { return Time{} }
	}
	return func(after time.Time) Time {
		return At(cron.Next(after, zone))
	}
}
