package browser

import (
	"context"
	"errors"
	"time"
)

// How it is told that Chromium or its driver hangs. Twice a second Chromium is
// asked for a sign of life; while it owes the answer, the processes on the
// answer's way are looked at, so that one that stands still is known for it
// soon, and one that the machine keeps waiting is not taken for it. All counts
// are of looks, not of time: while this process is itself suspended, none pass.
const (
	askEvery  = 500 * time.Millisecond
	lookEvery = 100 * time.Millisecond // while an answer is owed

	stoppedLooks = 4                // one of both is stopped by a signal
	idleLooks    = 10               // nobody has anything to do, and still no answer
	blindLooks   = 100              // no answer, where processes cannot be looked at
	owedLooks    = 600              // no answer, on however busy a machine
	spins        = 10 * time.Second // of processor time that one of both used meanwhile
)

// Why Chromium is given up.
var (
	errIsStopped = errors.New("it was stopped by a signal")
	errStands    = errors.New("it owes an answer and does nothing")
	errSpins     = errors.New("it is busy without end")
	errOwes      = errors.New("it owes an answer for too long")
)

// vitals are what can be seen of the processes that an answer passes through:
// Chromium, its driver, and this one.
type vitals struct {
	known   bool          // whether anything can be seen
	stopped bool          // Chromium or its driver is stopped
	busy    bool          // a thread of theirs runs, or waits for a processor or a disk
	own     bool          // one of ours does
	used    time.Duration // processor time of the main thread of either, whichever is more, since the first look
}

// silence counts what was seen while an answer is owed.
type silence struct {
	looks, stopped, idle int
	quiet                bool // in the present run of idle looks there was one in which we were idle too
}

// add takes one more look into account; it tells what is the matter when
// nothing but a hang explains what was seen.
func (s *silence) add(v vitals) error {
	s.looks++
	s.stopped++
	if !v.stopped {
		s.stopped = 0
	}
	if v.busy || !v.known {
		s.idle, s.quiet = 0, false
	} else {
		s.idle++
		s.quiet = s.quiet || !v.own
	}
	switch {
	case s.stopped >= stoppedLooks:
		return errIsStopped
	case s.idle >= idleLooks && s.quiet, s.idle >= blindLooks: // the answer may have come and wait for us
		return errStands
	case v.used >= spins:
		return errSpins
	case s.looks >= owedLooks, !v.known && s.looks >= blindLooks:
		return errOwes
	}
	return nil
}

// watch asks Chromium for signs of life until it has ended or hangs; then it
// clears it away. It is the body of a goroutine.
func (c *chromium) watch(ctx context.Context) {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	defer c.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.gone:
			return
		case <-ticker.C:
		}
		if c.lost = c.ask(ctx); c.lost != nil {
			if ctx.Err() == nil {
				c.log.Warn("Chromium does not answer and is ended", "reason", c.lost)
			}
			return
		}
		c.asked.Add(1)
	}
}

// ask asks Chromium for a sign of life and waits for it; the error tells why
// there will be none.
func (c *chromium) ask(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := Within(ctx, func() (any, error) { return c.look.Send("Browser.getVersion", nil) })
		answered <- err // an end of the driver is known by it
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var way *answerWay
	var s silence
	for {
		select {
		case err := <-answered:
			return err
		case <-ctx.Done():
			return nil
		case <-c.gone:
			return nil
		case <-ticker.C:
		}
		if way == nil {
			way = newAnswerWay(c.folder.pid(driverName), c.folder.pid(chromiumName))
		}
		if err := s.add(way.look()); err != nil {
			return err
		}
	}
}
