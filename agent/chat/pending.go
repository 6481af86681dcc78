package chat

import (
	"context"
	"fmt"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Limits of sources that are being read while a question is asked.
const (
	maxWait    = time.Minute // for the sources of Request.WaitFor
	maxPending = 20          // in an answer
	maxNamed   = 5           // in a text
)

// awaitSources waits for the sources of x.WaitFor, and sets a.Pending to the sources in
// question that have not been read. A source that is read while the answer is generated
// remains pending, since it may have been read after the search.
func (c *Chat) awaitSources(
	ctx context.Context,
	db *store.DB,
	request Request,
	answer *Answer,
	emit func(Event) error,
) error {
	if request.Sources.None {
		return nil
	}
	if len(request.WaitFor) > 0 {
		pending, err := db.PendingSources(ctx, request.WaitFor, maxPending)
		if err != nil {
			return err
		}
		if len(pending) > 0 {
			if err := emit(Event{Pending: pending}); err != nil {
				return err
			}
			waiting, cancel := context.WithTimeout(ctx, maxWait)
			defer cancel()
			if err := db.AwaitRead(waiting, request.WaitFor); err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
				return err
			}
		}
	}
	var err error
	answer.Pending, err = db.PendingSources(ctx, request.Sources.IDs, maxPending)
	return err
}

// stillRead returns a sentence that names sources.
func stillRead(pending []agent.PendingSource) string {
	names := make([]string, 0, maxNamed)
	for _, s := range pending[:min(len(pending), maxNamed)] {
		names = append(names, fmt.Sprintf("%q", s.Name))
	}
	switch {
	case len(pending) > maxNamed:
		return strings.Join(names, ", ") + " and further sources are still being read."
	case len(pending) == 1:
		return names[0] + " is still being read."
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are still being read."
}

// pendingPrompt is the part of the prompt about sources that have not been read.
func pendingPrompt(pending []agent.PendingSource) string {
	if len(pending) == 0 {
		return ""
	}
	return "\n\nYour knowledge is " +
		"incomplete at this moment: " + stillRead(pending) + " If the passages do not answer, " +
		"do not say that you do not know: say which sources are still being read, and that the question can " +
		"be asked again in a moment."
}
