package agent

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sleep waits for a time, or until ctx ends: then its error is the answer.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RetryAfter reads the value of the header Retry-After, in seconds or as a date
// (RFC 9110, section 10.2.3); 0 where it says nothing that makes sense.
func RetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
