package browser

import (
	"context"
	"errors"
	"time"
)

// The heartbeat of Chromium is a command that passes through its driver and
// returns within milliseconds. While one is unanswered, a probe of the
// processes distinguishes a hang from a slow machine. Limits are numbers of
// probes rather than times: no probes happen while this process itself is
// suspended or starved.
const (
	// between an answer and the next heartbeat: the maximum delay in noticing a hang
	heartbeatEvery = 500 * time.Millisecond
	probeEvery     = 100 * time.Millisecond // between probes while a heartbeat is unanswered

	hungAfter    = 10  // consecutive probes (one second) with all processes idle: the answer will never come
	timeoutAfter = 300 // probes (half a minute) on a busy machine: Chromium is unusable
)

// Limits of the memory of a page's process. What goes beyond is ended, as if it had
// crashed, before the whole machine is short of memory.
const (
	memoryEvery   = 4       // heartbeats between two looks at it
	maxPageMemory = 2 << 30 // bytes
)

// Why Chromium is abandoned.
var (
	errHung    = errors.New("it is idle and does not respond")
	errTimeout = errors.New("it has not responded for too long")
)

// heartbeat counts the probes while a heartbeat is unanswered.
type heartbeat struct {
	probes int // total
	idle   int // consecutive probes that found no process busy
}

// missed counts a probe. An error means that no answer will come.
func (h *heartbeat) missed(busy bool) error {
	h.probes++
	h.idle++
	if busy {
		h.idle = 0
	}
	switch {
	case h.idle >= hungAfter:
		return errHung
	case h.probes >= timeoutAfter:
		return errTimeout
	}
	return nil
}

// watch sends heartbeats until Chromium has ended or hangs, then ends it. It is
// the body of a goroutine.
func (c *chromium) watch(ctx context.Context) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	defer c.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.done:
			return
		case <-ticker.C:
		}
		if c.failure = c.awaitHeartbeat(ctx); c.failure != nil {
			if ctx.Err() == nil {
				c.log.Warn("kill Chromium, which does not respond", "reason", c.failure)
			}
			return
		}
		if c.heartbeats.Add(1)%memoryEvery == 0 && c.relay == nil {
			for _, pid := range endLargePages(c.folder.pid(chromiumName), maxPageMemory) {
				c.log.Warn(
					"ended the process of a page, which used too much memory",
					"pid", pid,
					"limit", maxPageMemory,
				)
			}
		}
	}
}

// sendHeartbeat sends a heartbeat and waits for the answer until ctx ends.
func (c *chromium) sendHeartbeat(ctx context.Context) error {
	_, err := Within(ctx, func() (any, error) {
		return c.devTools.Send("Browser.getVersion", nil)
	})
	return err
}

// awaitHeartbeat sends a heartbeat and probes the processes until the answer
// arrives. An error means that none will.
func (c *chromium) awaitHeartbeat(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- c.sendHeartbeat(ctx) }() // it fails when the driver has ended
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var p *probe
	var h heartbeat
	for {
		select {
		case err := <-answered:
			return err
		case <-ctx.Done():
			return nil
		case <-c.done:
			return nil
		case <-ticker.C:
		}
		if p == nil && c.relay == nil {
			p = newProbe(c.folder.pid(driverName), c.folder.pid(chromiumName))
		}
		// A remote Chromium may be busy and cannot be probed, so it gets the full time.
		if err := h.missed(c.relay != nil || p.busy()); err != nil {
			return err
		}
	}
}
