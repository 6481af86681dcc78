package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// How often the wall clock is compared with elapsed time, and the difference from which
// on it counts as set. The queue waits by elapsed time, which stops while the machine
// sleeps. By itself it could take half a minute to notice.
const (
	clockInterval = 2 * time.Second
	maxDrift      = 100 * time.Millisecond
)

func (s *Scheduler) startClock() error {
	clock, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return fmt.Errorf("start to watch the clock: %w", err)
	}
	s.clockOffset = s.measureClock()
	_, err = clock.NewJob(
		gocron.DurationJob(s.clockInterval),
		gocron.NewTask(s.checkClock),
		gocron.WithSingletonMode(gocron.LimitModeReschedule),
	)
	if err != nil {
		return errors.Join(fmt.Errorf("start to watch the clock: %w", err), clock.Shutdown())
	}
	clock.Start()
	s.clock = clock
	return nil
}

func (s *Scheduler) stopClock() {
	if err := s.clock.Shutdown(); err != nil {
		s.log.Error("stop clock watcher", "error", err)
	}
	s.clock = nil
}

// checkClock recomputes every agent's due time if the wall clock was set.
func (s *Scheduler) checkClock() {
	offset := s.measureClock()
	if (offset - s.clockOffset).Abs() < maxDrift {
		return
	}
	s.clockOffset = offset
	for _, db := range s.folder.Agents() {
		s.due.EnqueueAt(dueKey{db: db}, db.Pending().Schedules.Time)
	}
}

// measureClock returns how far the wall clock differs from elapsed time.
func (s *Scheduler) measureClock() time.Duration {
	return s.now().Round(0).Sub(s.epoch.Round(0)) - time.Since(s.epoch)
}
