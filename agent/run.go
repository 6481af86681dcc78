package agent

import "time"

// RunStatus is the state of a run of a schedule.
type RunStatus string

// The statuses of a run. A run that waits for the previous one is running, and
// has no executed_at yet.
const (
	RunRunning RunStatus = "running"
	RunSuccess RunStatus = "success"
	RunError   RunStatus = "error"
	RunSkipped RunStatus = "skipped" // another run of the schedule was in progress
	RunMissed  RunStatus = "missed"  // the server was not running when it was due
)

// Run is one due time of a schedule.
type Run struct {
	ID           string    `json:"id" example:"run-06f1q2s3t4v5a6b7c8d9"`
	ScheduledFor Time      `json:"scheduled_for" format:"date-time"`
	ExecutedAt   Time      `json:"executed_at" nullable:"true" format:"date-time" doc:"When it started; null if it did not."`
	Status       RunStatus `json:"status" enum:"success,error,skipped,missed,running" example:"success"`
	DurationMS   int64     `json:"duration_ms" example:"120"`
	ExecutionID  string    `json:"execution_id" doc:"The execution that it started." example:""`
	Error        string    `json:"error" example:""`
}

// Firing is what a due schedule does.
type Firing struct {
	Start     []Time // runs to start, oldest first
	CatchUp   bool   // the runs were missed and are caught up, one after another
	Missed    []Time // the newest dropped runs, oldest first
	MissedAll int    // number of dropped runs; counted up to a few thousand
	Next      Time   // the next run; zero if there is none
}

// Limits on catching up.
const (
	maxCatchUp    = 1000 // runs
	maxMissedRows = 100  // rows written for dropped runs
)

// Fire returns what an active schedule has to do at a time not before its next
// run. If that run is more than MaxLateness late, all due runs count as missed and
// the misfire policy applies.
func (s *Schedule) Fire(now Time) (Firing, error) {
	firing := Firing{Start: []Time{s.NextRun}}
	more := false
	if s.Type == ScheduleCron {
		cron, zone, err := s.cron()
		if err != nil {
			return firing, err
		}
		firing.Next = At(cron.Next(now.Time, zone))
		var later []time.Time
		if next := s.NextRun.Add(time.Nanosecond); !next.After(now.Time) {
			later, more = cron.Newest(next, now.Time, zone, maxCatchUp)
		}
		if more {
			firing.Start = nil
		}
		for _, at := range later {
			firing.Start = append(firing.Start, At(at))
		}
	}
	if now.Sub(s.NextRun.Time) <= MaxLateness {
		return firing, nil
	}
	keep := 1
	switch s.MisfirePolicy {
	case MisfireSkip:
		keep = 0
	case MisfireRunAll:
		keep = maxCatchUp
	}
	given := max(0, len(firing.Start)-keep)
	firing.Missed, firing.Start, firing.CatchUp = firing.Start[:given], firing.Start[given:], true
	firing.MissedAll = len(firing.Missed)
	firing.Missed = firing.Missed[max(0, len(firing.Missed)-maxMissedRows):]
	return firing, nil
}
