package subscription

import (
	"math/rand/v2"
	"time"
)

// retryPauses are the delays before each retry of a delivery, as Standard
// Webhooks recommends. With the first attempt, there are ten within 76 hours.
var retryPauses = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// longestRetryAfter limits the delay that a target can request.
const longestRetryAfter = 24 * time.Hour

// retryDelay returns the delay after a failed attempt, the tries-th of the
// delivery, or false if it was the last. Up to a tenth is added at random to
// spread the attempts of many deliveries. A target's Retry-After applies if it
// is longer.
func retryDelay(tries int, retryAfter time.Duration) (time.Duration, bool) {
	if tries < 1 || tries > len(retryPauses) {
		return 0, false
	}
	pause := retryPauses[tries-1]
	pause += time.Duration(rand.Float64() * float64(pause) / 10)
	return max(pause, min(retryAfter, longestRetryAfter)), true
}
