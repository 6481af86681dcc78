package httpapi

import (
	"context"
	"time"

	"satchel/agent"
)

// progressOut is the data of the event progress.
type progressOut struct {
	Kind        string  `json:"kind"`
	ID          string  `json:"id"`
	Done        int     `json:"done"`
	Total       int     `json:"total"`
	Rate        float64 `json:"rate"`                   // per second
	SecondsLeft int     `json:"seconds_left,omitempty"` // absent if it cannot be estimated
	at          time.Time
	samples     []progressSample
}

// sendProgress sends the progress of sources that advanced.
func (feed *changeFeed) sendProgress(ctx context.Context, now time.Time) (next time.Duration, err error) {
	if next, due := feed.dueToSend(&feed.working, &feed.progressAt, now); !due {
		return next, nil
	}
	sources, err := feed.db.SourcesAtWork(ctx)
	if err != nil {
		return 0, err
	}
	before := feed.progress
	feed.progress = map[string]progressOut{}
	for _, source := range sources {
		if source.Progress == nil {
			continue
		}
		last, known := before[source.ID]
		p := progressOut{
			Kind:  agent.KindSource,
			ID:    source.ID,
			Done:  source.Progress.Done,
			Total: source.Progress.Total,
			at:    now,
		}
		if known && p.Done == last.Done && p.Total == last.Total {
			feed.progress[source.ID] = last
			continue
		}
		if took := now.Sub(last.at).Seconds(); known && p.Done >= last.Done {
			p.Rate = float64(int(10*(0.7*float64(p.Done-last.Done)/took+0.3*last.Rate))) / 10
			p.samples = last.samples
		}
		p.samples = addSample(p.samples, progressSample{now, p.Done, p.Total})
		p.SecondsLeft = secondsLeft(p.samples)
		feed.progress[source.ID] = p
		feed.send(frame("progress", "", p), false)
	}
	return 0, nil
}

// progressSample is how far the work on a source was at a time.
type progressSample struct {
	at          time.Time
	done, total int
}

// The samples that an estimate is made from.
const (
	sampleInterval = time.Second
	sampleAge      = time.Minute
	minSampled     = 10 * time.Second // of work, before the first estimate
	minSampledDone = 5
)

// addSample adds the newest sample to samples that are at least sampleInterval
// apart, and drops those that are older than sampleAge.
func addSample(samples []progressSample, s progressSample) []progressSample {
	if n := len(samples); n > 1 && samples[n-1].at.Sub(samples[n-2].at) < sampleInterval {
		samples = samples[:n-1] // the newest one may be closer, since it is the current state
	}
	samples = append(samples, s)
	for s.at.Sub(samples[0].at) > sampleAge {
		samples = samples[1:]
	}
	return samples
}

// secondsLeft estimates how long the rest of the work takes, from how fast the rest
// became smaller. It is 0 if nothing can be said yet, or if more than half as much work
// was found as was done.
func secondsLeft(samples []progressSample) int {
	first, last := samples[0], samples[len(samples)-1]
	done, found, remaining := last.done-first.done, last.total-first.total, last.total-last.done
	took := last.at.Sub(first.at)
	if took < minSampled || done < minSampledDone || 2*found > done || remaining <= 0 {
		return 0
	}
	return max(1, int(took.Seconds()*float64(remaining)/float64(done-max(found, 0))))
}
