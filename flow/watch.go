package flow

// watchBuffer is how many events are buffered for a subscriber.
const watchBuffer = 256

// Watch subscribes to the live events of an execution from now on. The channel
// is closed if its reader falls behind. Call the returned func to unsubscribe.
func (engine *Engine) Watch(executionID string) (<-chan Event, func()) {
	c := make(chan Event, watchBuffer)
	engine.watchMu.Lock()
	defer engine.watchMu.Unlock()
	if engine.watchers[executionID] == nil {
		engine.watchers[executionID] = map[chan Event]bool{}
	}
	engine.watchers[executionID][c] = true
	engine.watching.Add(1)
	return c, func() {
		engine.watchMu.Lock()
		defer engine.watchMu.Unlock()
		engine.unwatch(executionID, c)
	}
}

// unwatch removes a subscriber. The caller holds e.watchMu.
func (engine *Engine) unwatch(executionID string, c chan Event) {
	if !engine.watchers[executionID][c] {
		return
	}
	close(c)
	engine.watching.Add(-1)
	if delete(engine.watchers[executionID], c); len(engine.watchers[executionID]) == 0 {
		delete(engine.watchers, executionID)
	}
}

// publish sends an event to the subscribers of an execution.
func (engine *Engine) publish(executionID string, ev Event) {
	if engine.watching.Load() == 0 {
		return
	}
	engine.watchMu.Lock()
	defer engine.watchMu.Unlock()
	for c := range engine.watchers[executionID] {
		select {
		case c <- ev:
		default:
			engine.unwatch(executionID, c)
		}
	}
}
