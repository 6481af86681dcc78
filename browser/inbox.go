package browser

import (
	"context"
	"sync"
)

// inbox takes what Playwright's handlers want done, which they must not do
// themselves. Putting never blocks; one goroutine does the work in order.
type inbox struct {
	mu    sync.Mutex
	tasks []func(context.Context)
	ready chan struct{} // holds one token when there are tasks
}

// maxTasks bounds what waits. Tabs, dialogs and downloads are each bounded
// before; past it a task is dropped.
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

// work does what is put until ctx ends. It is the body of a goroutine.
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
