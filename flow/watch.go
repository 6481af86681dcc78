package flow

// watchBuffer is how many events are buffered for a subscriber.
const watchBuffer = 256

// Watch subscribes to the live events of an execution from now on. The channel
// is closed if its reader falls behind. Call the returned func to unsubscribe.
func (e *Engine) Watch(executionID string) (<-chan Event, func()) {
	c := make(chan Event, watchBuffer)
	e.watchMu.Lock()
	defer e.watchMu.Unlock()
	if e.watchers[executionID] == nil {
		e.watchers[executionID] = map[chan Event]bool{}
	}
	e.watchers[executionID][c] = true
	e.watching.Add(1)
	return c, func() {
		e.watchMu.Lock()
		defer e.watchMu.Unlock()
		e.unwatch(executionID, c)
	}
}

// unwatch removes a subscriber. The caller holds e.watchMu.
func (e *Engine) unwatch(executionID string, c chan Event) {
	if !e.watchers[executionID][c] {
		return
	}
	close(c)
	e.watching.Add(-1)
	if delete(e.watchers[executionID], c); len(e.watchers[executionID]) == 0 {
		delete(e.watchers, executionID)
	}
}

// publish sends an event to the subscribers of an execution.
func (e *Engine) publish(executionID string, ev Event) {
	if e.watching.Load() == 0 {
		return
	}
	e.watchMu.Lock()
	defer e.watchMu.Unlock()
	for c := range e.watchers[executionID] {
		select {
		case c <- ev:
		default:
			e.unwatch(executionID, c)
		}
	}
}
