package auth

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// roundTrip is a transport made from a function, for tests in a synctest bubble, where
// sockets would stop the clock.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerKeys(t testing.TB, keys ...proxyKey) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(keySetJSON(t, keys...)))}
}

// hanging is a body that never arrives.
type hanging struct{ ctx context.Context }

func (h hanging) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}
func (h hanging) Close() error { return nil }

// verifyAll verifies a token several times at once and counts how many passed.
func verifyAll(t *testing.T, v *Verifier, times int, token string) *atomic.Int64 {
	passed := new(atomic.Int64)
	for range times {
		go func() {
			if _, err := v.Verify(t.Context(), token); err == nil {
				passed.Add(1)
			}
		}()
	}
	return passed
}

// elapse lets time pass in a bubble.
func elapse(d time.Duration) { <-time.After(d) }

func bubbleToken(t testing.TB) string {
	return proxyEC().sign(
		t,
		goodClaims(newTestClock(), map[string]any{"iat": 0, "nbf": 0, "exp": int64(lastTokenTime)}),
		nil,
	)
}

func TestOneFetchForAll(t *testing.T) {
	proxyEC()
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int64
		release := make(chan struct{})
		v := newTestVerifier(
			t,
			"https://keys.example.com",
			&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				fetches.Add(1)
				<-release
				return answerKeys(t, proxyEC()), nil
			})},
			nil,
		)
		passed := verifyAll(t, v, 100, bubbleToken(t))
		synctest.Wait()
		if fetches.Load() != 1 || passed.Load() != 0 {
			t.Errorf("%d fetches are running and %d passed, want 1 and 0", fetches.Load(), passed.Load())
		}
		close(release)
		synctest.Wait()
		if fetches.Load() != 1 || passed.Load() != 100 {
			t.Errorf("%d fetches and %d passed, want 1 and 100", fetches.Load(), passed.Load())
		}
	})
}

// TestHangingKeysHoldUpFew lets the key server hang before and during its response:
// nobody waits longer than fetchTimeout, and after the first failure only the request
// that fetches again waits.
func TestHangingKeysHoldUpFew(t *testing.T) {
	proxyEC()
	for name, hang := range map[string]func(*http.Request) (*http.Response, error){
		"before the answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"within the answer": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: hanging{r.Context()}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				healthy := true
				v := newTestVerifier(
					t,
					"https://keys.example.com",
					&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						if healthy {
							return answerKeys(t, proxyEC()), nil
						}
						return hang(r)
					})},
					nil,
				)
				token := bubbleToken(t)
				wantAda(t, v, token)
				healthy = false
				elapse(refetchEvery)
				first := verifyAll(t, v, 10, token)
				synctest.Wait()
				if n := first.Load(); n != 0 {
					t.Errorf("%d passed while the keys may have changed, want 0", n)
				}
				elapse(fetchTimeout)
				synctest.Wait()
				if n := first.Load(); n != 10 {
					t.Errorf("%d passed after the time limit, want 10", n)
				}
				elapse(refetchEvery)
				later := verifyAll(t, v, 10, token)
				synctest.Wait()
				if n := later.Load(); n != 9 {
					t.Errorf("%d passed at once in the outage, want all but the one that fetches", n)
				}
				elapse(fetchTimeout)
				synctest.Wait()
				if n := later.Load(); n != 10 {
					t.Errorf("%d passed in the end, want 10", n)
				}
			})
		})
	}
}

func TestWaiterEndsWithItsContext(t *testing.T) {
	proxyEC()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		v := newTestVerifier(
			t,
			"https://keys.example.com",
			&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				<-release
				return answerKeys(t, proxyEC()), nil
			})},
			nil,
		)
		token := bubbleToken(t)
		leader, leave := context.WithCancel(t.Context())
		var leaderErr error
		go func() { _, leaderErr = v.Verify(leader, token) }()
		synctest.Wait()
		leave() // the fetch continues for those who wait
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := v.Verify(ended, token); err == nil {
			t.Error("a request that ended while waiting passed")
		}
		passed := verifyAll(t, v, 1, token)
		synctest.Wait()
		close(release)
		synctest.Wait()
		if passed.Load() != 1 || leaderErr != nil {
			t.Errorf("%d passed and the first one got %v, want 1 and no error", passed.Load(), leaderErr)
		}
	})
}

func TestFetchEndsWithTheServer(t *testing.T) {
	proxyEC()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		v, err := NewVerifier(ctx, VerifierOptions{
			JWKSURL:  "https://keys.example.com",
			Audience: proxyAudience,
			Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := v.Verify(t.Context(), bubbleToken(t))
			done <- err
		}()
		synctest.Wait()
		stop()
		synctest.Wait()
		select {
		case err := <-done:
			if err == nil {
				t.Error("a token passed without keys")
			}
		default:
			t.Error("the fetch outlives the server")
		}
	})
}

func TestPanicOfTheTransport(t *testing.T) {
	panics := true
	v := newTestVerifier(
		t,
		"https://keys.example.com",
		&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			if panics {
				panic(errors.New("broken transport"))
			}
			return answerKeys(t, proxyEC()), nil
		})},
		nil,
	)
	func() {
		defer func() { _ = recover() }()
		_, _ = v.Verify(t.Context(), "x.y.z")
	}()
	panics = false
	wantAda(t, v, bubbleToken(t))
}

// TestVerifyFromManyGoroutines rotates keys, moves the clock and breaks the server while
// tokens are verified; it is meant for the race detector.
func TestVerifyFromManyGoroutines(t *testing.T) {
	f := newKeysFixture(t, proxyEC(), rotatedEC())
	tokens := []string{f.token(t, proxyEC()), f.token(t, rotatedEC()), f.unknown(t, 1), "x.y.z"}
	wantAda(t, f.Verifier, tokens[0])
	const workers, rounds, minutes = 8, 200, 20
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for n := range rounds {
				which := (worker + n) % len(tokens)
				caller, err := f.Verify(t.Context(), tokens[which])
				if good := which < 2; good != (err == nil) || good != (caller.Email == "ada@example.com") {
					t.Errorf("token %d: %q, %v", which, caller.Email, err)
				}
				if worker == 0 && n%(rounds/minutes) == 0 {
					if f.server.publish(t, rotatedEC(), proxyEC()); n%3 == 0 {
						f.server.say(http.StatusInternalServerError, "")
					}
					f.clock.advance(time.Minute)
				}
			}
		})
	}
	group.Wait()
	if hits := f.server.hits.Load(); hits > 2*(minutes+1) {
		t.Errorf("the keys were fetched %d times in %d minutes", hits, minutes)
	}
}
