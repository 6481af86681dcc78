package browser

import (
	"context"
	"sync"
)

// inbox collects tasks from Playwright's handlers, which must not do them
// themselves. put never blocks; one goroutine runs the tasks in order.
type inbox struct {
	mu    sync.Mutex
	tasks []func(context.Context)
	ready chan struct{} // holds one token if there are tasks
}

// maxTasks limits the waiting tasks. Tabs, dialogs and downloads each have
// their own limits; beyond maxTasks, tasks are dropped.
const maxTasks = 1000

func (i *inbox) put(task func(context.Context)) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.tasks) >= maxTasks {
		return false
	}
	i.tasks = append(i.tasks, task)
	select {
	case i.ready <- struct{}{}:
	default:
	}
	return true
}

// work runs tasks until ctx ends. It is the body of a goroutine.
func (i *inbox) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.ready:
		}
		i.mu.Lock()
		tasks := i.tasks
		i.tasks = nil
		i.mu.Unlock()
		for _, task := range tasks {
			if ctx.Err() != nil {
				return
			}
			task(ctx)
		}
	}
}
