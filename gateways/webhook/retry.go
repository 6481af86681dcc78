package webhook

import (
	"math/rand/v2"
	"time"
)

// retryPauses are the waits before each further try of a delivery, those that
// Standard Webhooks names. With the first try, ten are made within 76 hours.
var retryPauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// longestRetryAfter bounds the wait that a target can ask for.
const longestRetryAfter = 24 * time.Hour

// nextTry returns how long to wait after a try that failed, the tries-th of the
// delivery; false when it was the last. Up to a tenth is added at random, so
// that the tries of many deliveries spread. A target's Retry-After counts when
// it asks for a longer wait.
func nextTry(tries int, retryAfter time.Duration) (time.Duration, bool) {
	if tries < 1 || tries > len(retryPauses) {
		return 0, false
	}
	pause := retryPauses[tries-1]
	pause += time.Duration(rand.Float64() * float64(pause) / 10)
	return max(pause, min(retryAfter, longestRetryAfter)), true
}
