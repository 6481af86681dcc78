package schedule

import (
	"log/slog"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"satchel/store"
)

// TestTimerTakesAnyTime sets the timer for times that come while it is set: it
// must go on to work. One of gocron's kinds of jobs does not.
func TestTimerTakesAnyTime(t *testing.T) {
	folder, err := store.Open(store.Options{Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	s := New(Options{Folder: folder})
	if s.timer, err = gocron.NewScheduler(); err != nil {
		t.Fatal(err)
	}
	s.timer.Start()
	for i := range 3000 {
		s.arm(time.Now().UnixNano() + int64(i%300)*500)
	}
	for len(s.wake) > 0 {
		<-s.wake
	}
	s.arm(time.Now().Add(time.Millisecond).UnixNano())
	<-s.wake
	if err := s.timer.Shutdown(); err != nil {
		t.Error(err)
	}
}
