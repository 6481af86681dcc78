package script

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// children returns the live processes of a pool.
func (p *Pool) children() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*process
	for child := range p.all {
		out = append(out, child)
	}
	return out
}

func (p *Pool) counts() (busy, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy, len(p.waiting)
}

// waitUntil waits until ok returns true.
func waitUntil(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}

const endless = "for (;;) {}"

func TestStartStop(t *testing.T) {
	p := New(Options{Size: 2})
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); agent.ErrorCode(err) != CodeKilled {
		t.Errorf("before Start: %v", err)
	}
	p.Stop()
	for range 3 {
		for range 2 {
			if err := p.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil || got.Value != 1.0 {
			t.Errorf("got %v, %v", got.Value, err)
		}
		children := p.children()
		p.Stop()
		p.Stop()
		for _, child := range children {
			if child.Alive() {
				t.Error("a child is still running after Stop")
			}
		}
	}
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); agent.ErrorCode(err) != CodeKilled {
		t.Errorf("after Stop: %v", err)
	}
}

func TestStopEndsRunningScripts(t *testing.T) {
	p := New(Options{Size: 2})
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	for range 5 { // two run, three wait
		work.Go(func() {
			if _, err := p.Run(t.Context(), Call{Code: endless}); agent.ErrorCode(err) != CodeKilled {
				t.Errorf("got %v", err)
			}
		})
	}
	waitUntil(t, func() bool {
		busy, waiting := p.counts()
		return busy == 2 && waiting == 3 && len(p.children()) == 2
	})
	p.Stop()
	work.Wait()
	if busy, waiting := p.counts(); busy != 0 || waiting != 0 {
		t.Errorf("%d busy, %d waiting", busy, waiting)
	}
}

func TestStartContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := New(Options{Size: 1})
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Fatal(err)
	}
	children := p.children()
	cancel()
	for _, child := range children {
		<-child.Done()
	}
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); agent.ErrorCode(err) != CodeKilled {
		t.Errorf("got %v", err)
	}
}

func TestCallerCancels(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.Run(ctx, Call{Code: endless})
		ended <- err
	}()
	waitUntil(t, func() bool {
		busy, _ := p.counts()
		return busy == 1
	})
	short, cancelShort := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancelShort()
	if _, err := p.Run(short, Call{Code: "return 1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a waiting call: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a running call: %v", err)
	}
	if got, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil || got.Value != 1.0 {
		t.Errorf("the next one: %v, %v", got.Value, err)
	}
}

// If a child is killed from outside, only its own script fails, and the child is
// replaced.
func TestKilledChild(t *testing.T) {
	running := make(chan struct{})
	p := newPool(t, Options{Size: 2, Warm: 2, Fetch: func(*http.Request) (*http.Response, error) {
		close(running)
		return nil, errors.New("no")
	}})
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return len(p.children()) >= 2 })
	before := p.children()
	ended := make(chan error)
	go func() {
		_, err := p.Run(t.Context(), Call{Code: "fetch('http://running/');" + endless})
		ended <- err
	}()
	<-running
	for _, child := range before { // a busy one and an idle one
		child.Kill()
	}
	if err := <-ended; agent.ErrorCode(err) != CodeKilled {
		t.Errorf("got %v", err)
	}
	if got, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil || got.Value != 1.0 {
		t.Errorf("the next one: %v, %v", got.Value, err)
	}
	waitUntil(t, func() bool {
		return len(slices.DeleteFunc(p.children(), func(c *process) bool { return !c.Alive() })) >= 2
	})
}

func TestIdleChildrenEnd(t *testing.T) {
	p := newPool(t, Options{Size: 2, Warm: 2, Idle: 20 * time.Millisecond})
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { return len(p.children()) == 0 })
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Error(err)
	}
}

// The scripts of one owner use at most half of the pool.
func TestOwners(t *testing.T) {
	p := newPool(t, Options{Size: 4})
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() { _, _ = p.Run(ctx, Call{Code: endless, Owner: "greedy"}) })
	}
	waitUntil(t, func() bool {
		busy, waiting := p.counts()
		return busy == 2 && waiting == 4
	})
	for _, owner := range []string{"other", ""} {
		if got, err := p.Run(t.Context(), Call{Code: "return 1", Owner: owner}); err != nil || got.Value != 1.0 {
			t.Errorf("%q: %v, %v", owner, got.Value, err)
		}
	}
	cancel()
	work.Wait()
	if busy, waiting := p.counts(); busy != 0 || waiting != 0 || len(p.owners) != 0 {
		t.Errorf("%d busy, %d waiting, %v", busy, waiting, p.owners)
	}
}

func TestQueueIsBounded(t *testing.T) {
	p := newPool(t, Options{Size: 1})
	p.mu.Lock()
	p.busy, p.waiting = 1, make([]*ticket, maxWaiting)
	p.mu.Unlock()
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); agent.ErrorCode(err) != CodeBusy {
		t.Errorf("got %v", err)
	}
	p.mu.Lock()
	p.busy, p.waiting = 0, nil
	p.mu.Unlock()
}

// Many concurrent scripts, more than a child runs in its lifetime: each gets
// its own result, and children are replaced on the way.
func TestManyScripts(t *testing.T) {
	p := newPool(t, Options{Size: 2, Warm: 1})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for n := range 2*maxRuns/8 + 50 {
				got, err := p.Run(t.Context(), Call{
					Code:      "console.log(args); return [args, globalThis.before, globalThis.before = args]",
					Variables: map[string]any{"args": fmt.Sprint(i, n)},
				})
				want := []any{fmt.Sprint(i, n), nil, fmt.Sprint(i, n)}
				if err != nil || !reflect.DeepEqual(got.Value, want) || got.Logs[0].Message != fmt.Sprint(i, n) {
					t.Errorf("%d %d: %v, %v", i, n, got, err)
					return
				}
			}
		})
	}
	work.Wait()
}

// A child whose behaviour no script could cause is killed.
func TestBrokenChild(t *testing.T) {
	x := exchange{process: &process{}}
	for name, payload := range map[string]string{"broken": "{", "not allowed": `{"ID":1}`} {
		if err := x.serving.start(t.Context(), []byte(payload)); err == nil {
			t.Errorf("a fetch that is %s is answered", name)
		}
	}
}

// The most recently used child runs the next script; the others become idle and
// are ended in time.
func TestSameChildAgain(t *testing.T) {
	p := newPool(t, Options{Size: 3, Warm: 3})
	if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle) == 3
	})
	before := lastIdle(p)
	for range 6 {
		if _, err := p.Run(t.Context(), Call{Code: "return 1"}); err != nil {
			t.Fatal(err)
		}
		if lastIdle(p) != before {
			t.Error("a script ran in a different child than the previous one")
		}
	}
}
