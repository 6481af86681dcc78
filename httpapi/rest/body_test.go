package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"satchel/agent"
)

// A body is read up to the limit, whether or not its size is known, and only its own bytes
// stay reserved.
func TestBodyIsReadUpToTheLimit(t *testing.T) {
	const most = 200_000
	broken := errors.New("broken")
	for _, test := range []struct {
		name   string
		sent   int
		size   int64
		reader func(io.Reader) io.Reader
		want   error
	}{
		{"nothing", 0, 0, nil, nil},
		{"nothing, of unknown size", 0, -1, nil, nil},
		{"small", 100, 100, nil, nil},
		{"small, of unknown size", 100, -1, nil, nil},
		{"several blocks", 70_000, 70_000, iotest.HalfReader, nil},
		{"several blocks, of unknown size", 70_000, -1, iotest.OneByteReader, nil},
		{"as much as fits", most, most, iotest.DataErrReader, nil},
		{"as much as fits, of unknown size", most, -1, nil, nil},
		{"one byte too many", most + 1, most + 1, nil, BodyTooLarge(most)},
		{"one byte too many, of unknown size", most + 1, -1, nil, BodyTooLarge(most)},
		{"cut short", 10, 100, nil, io.ErrUnexpectedEOF},
		{"broken", 10, -1, func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) }, broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := NewMemory(1<<20, 0)
			body := memory.Body(most)
			text := bytes.Repeat([]byte("abcdefg"), most)[:test.sent]
			var r io.Reader = bytes.NewReader(text)
			if test.reader != nil {
				r = test.reader(r)
			}
			got, err := body.Read(t.Context(), r, test.size)
			if agent.ErrorCode(err) != agent.ErrorCode(test.want) ||
				!errors.Is(err, test.want) && agent.ErrorCode(err) != agent.CodeFileTooLarge {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err == nil && (!bytes.Equal(got, text) || memory.Used() != int64(test.sent)) {
				t.Errorf("%d bytes are read and %d reserved, of %d", len(got), memory.Used(), test.sent)
			}
			body.Release()
			if used := memory.Used(); used != 0 {
				t.Errorf("%d bytes stay reserved", used)
			}
		})
	}
}

// A client that sends slowly reserves about what it has sent, whatever it announced.
func TestSlowBodyReservesWhatItSent(t *testing.T) {
	for _, sent := range []int{0, 10, 5_000, 100_000} {
		memory := NewMemory(BodyMemory, 0)
		body := memory.Body(MaxBody)
		var used int64
		r := io.MultiReader(strings.NewReader(strings.Repeat("x", sent)), readerFunc(func([]byte) (int, error) {
			used = memory.Used()
			return 0, io.ErrUnexpectedEOF
		}))
		if _, err := body.Read(t.Context(), r, MaxBody); err == nil {
			t.Fatal("a body that is cut short is read")
		}
		if used == 0 || used > int64(2*sent+minBlock+1) {
			t.Errorf("%d bytes are reserved after %d", used, sent)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A body waits for memory as long as the patience, in all its parts together, and in turn.
func TestMemoryIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := NewMemory(10, 2*time.Second)
		if !memory.Try(netip.Prefix{}, 10) || memory.Try(netip.Prefix{}, 1) {
			t.Fatal("10 bytes of 10 are not all")
		}
		began := time.Now()
		body := memory.Body(5)
		_, err := body.Read(t.Context(), strings.NewReader("12345"), 5)
		if agent.ErrorCode(err) != agent.CodeUnavailable || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		var mu sync.Mutex // protects order
		var order []int
		done := make(chan struct{})
		for i, n := range []int64{6, 1} {
			go func() {
				waiting := memory.Body(6)
				_, err := waiting.Read(t.Context(), strings.NewReader("123456"[:n]), n)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				waiting.Release()
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		memory.Release(netip.Prefix{}, 1) // enough for the second one, which is not preferred
		synctest.Wait()
		mu.Lock()
		overtaken := len(order) != 0
		mu.Unlock()
		if overtaken {
			t.Error("a small body overtakes a large one")
		}
		memory.Release(netip.Prefix{}, 9)
		<-done
		<-done
		if used := memory.Used(); used != 0 {
			t.Errorf("%d bytes stay reserved", used)
		}
	})
}

// Requests without an identity wait for the share of their network, and others do not wait
// for them.
func TestNetworkHasAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
		memory := NewMemory(40, 2*time.Second)
		read := func(network netip.Prefix) (*Body, error) {
			body := memory.Body(10)
			body.From(network)
			_, err := body.Read(t.Context(), strings.NewReader("1234567890"), 10)
			return &body, err
		}
		held, err := read(first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(first); agent.ErrorCode(err) != agent.CodeUnavailable {
			t.Errorf("a network holds more than its share: %v", err)
		}
		next := make(chan error)
		go func() {
			body, err := read(first)
			body.Release()
			next <- err
		}()
		synctest.Wait()
		for _, network := range []netip.Prefix{second, {}, {}} {
			began := time.Now()
			body, err := read(network)
			if err != nil || time.Since(began) != 0 {
				t.Errorf("%v: %v after %v", network, err, time.Since(began))
			}
			defer body.Release()
		}
		if memory.Used() != 40 {
			t.Errorf("%d bytes are reserved", memory.Used())
		}
		held.Release()
		if err := <-next; err != nil || memory.Used() != 30 || len(memory.networks) != 1 {
			t.Errorf("%v, %d bytes are reserved, for networks %v", err, memory.Used(), memory.networks)
		}
	})
}

// A request that ends while it waits leaves the queue.
func TestCancelledWaitLeavesTheQueue(t *testing.T) {
	memory := NewMemory(10, time.Hour)
	memory.Try(netip.Prefix{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := memory.Body(5)
	if _, err := body.Read(ctx, strings.NewReader("12345"), 5); agent.ErrorCode(err) != agent.CodeUnavailable {
		t.Error(err)
	}
	memory.Release(netip.Prefix{}, 10)
	if !memory.Try(netip.Prefix{}, 10) || len(memory.waiting) != 0 {
		t.Errorf("%d wait", len(memory.waiting))
	}
}
