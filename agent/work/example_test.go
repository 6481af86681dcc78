package work_test

import (
	"context"
	"fmt"

	"satchel/agent/work"
)

func ExampleQueue() {
	pages := map[string]int{"handbook": 3}
	queue := work.New(work.Options[string]{
		Run: func(_ context.Context, key string) (work.Next, error) {
			fmt.Println(key, "has", pages[key], "pages left")
			pages[key]--
			return work.Next{Again: pages[key] > 0}, nil
		},
	})
	queue.Start(context.Background())
	defer queue.Stop()

	queue.Enqueue("handbook")
	if err := queue.Wait(context.Background(), "handbook"); err != nil {
		panic(err)
	}
	// Output:
	// handbook has 3 pages left
	// handbook has 2 pages left
	// handbook has 1 pages left
}
