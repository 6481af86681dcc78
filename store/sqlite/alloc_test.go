package sqlite

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Memory that several goroutines allocate, resize and free keeps what was written to it.
func TestAllocate(t *testing.T) {
	type piece struct {
		p    uintptr
		n    int
		fill byte
	}
	given := make(chan piece, 1000) // by one goroutine, to be freed by another
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			tls := libc.NewTLS()
			defer tls.Close()
			random := rand.New(rand.NewPCG(uint64(g), 1))
			check := func(x piece) {
				if int(allocated(x.p)) < x.n ||
					x.p%sizeStep != 0 ||
					!bytes.Equal(view(x.p, x.n), bytes.Repeat([]byte{x.fill}, x.n)) {
					t.Errorf("an allocation of %d bytes at %x has changed", x.n, x.p)
				}
			}
			for i := range 20_000 {
				x := piece{n: 8 * (1 + random.IntN(1<<random.IntN(12))), fill: byte(i)}
				x.p = allocate(tls, uintptr(x.n))
				fill(view(x.p, x.n), x.fill)
				if random.IntN(4) == 0 {
					before := x.n
					x.n = 8 * (1 + random.IntN(4096))
					x.p = reallocate(tls, x.p, uintptr(x.n))
					check(piece{x.p, min(before, x.n), x.fill})
					fill(view(x.p, x.n), x.fill)
				}
				select {
				case given <- x:
				default:
					check(x)
					deallocate(tls, x.p)
				}
				if random.IntN(3) == 0 {
					select {
					case x := <-given:
						check(x)
						deallocate(tls, x.p)
					default:
					}
				}
				if i%5000 == 0 {
					ReleaseMemory()
				}
			}
		})
	}
	running.Wait()
	close(given)
	tls := libc.NewTLS()
	defer tls.Close()
	for x := range given {
		deallocate(tls, x.p)
	}
}

func fill(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

// Slot sizes waste little, and pages fill a span.
func TestSlotSizes(t *testing.T) {
	for n := uintptr(1); n <= largestSlot; n++ {
		if size := slotSizes[classOfSize[(n+sizeStep-1)/sizeStep]]; size < n || size-n > max(16, n/7) {
			t.Fatalf("%d bytes take %d", n, size)
		}
	}
	if left := (spanSize - spanHead) % pageSlot; left > pageSlot/8 {
		t.Errorf("a span of pages leaves %d bytes", left)
	}
}

// A page cache does what SQLite requires of one, in any order of calls.
func TestPageCache(t *testing.T) {
	const content, extra = 512, 64
	tls := libc.NewTLS()
	defer tls.Close()
	random := rand.New(rand.NewPCG(7, 7))
	before := cachedPages.Load()
	cache := createCache(tls, content, extra, 1)
	sizeCache(tls, cache, 100)
	pinned := map[uint32]uintptr{}
	stamp := func(p, key uintptr) { *at[uintptr](at[cachedPage](p).content + content - 8) = key + 1 }
	for range 200_000 {
		key := uint32(random.IntN(400))
		p, isPinned := pinned[key]
		switch op := random.IntN(100); {
		case !isPinned && op < 50:
			create := int32(random.IntN(3))
			p := fetchPage(tls, cache, key, create)
			switch {
			case p == 0 && create == 2, p == 0 && create == 1 && len(pinned) < 90,
				p != 0 && create == 1 && len(pinned) > 90 && *at[uintptr](at[cachedPage](p).extra) == 0:
				t.Fatalf("fetch %d, create %d: %x with %d pinned", key, create, p, len(pinned))
			case p == 0:
				continue
			}
			page := at[cachedPage](p)
			if *at[uintptr](page.extra) != 0 && *at[uintptr](page.content + content - 8) != uintptr(key)+1 {
				t.Fatalf("page %d has the content of %d", key, *at[uintptr](page.content + content - 8)-1)
			}
			*at[uintptr](page.extra) = 1
			stamp(p, uintptr(key))
			pinned[key] = p
		case isPinned && op < 90:
			unpinPage(tls, cache, p, int32(random.IntN(2)*random.IntN(2)))
			delete(pinned, key)
		case isPinned && op < 95:
			to := uint32(random.IntN(400))
			if _, taken := pinned[to]; !taken {
				rekeyPage(tls, cache, p, key, to)
				stamp(p, uintptr(to))
				delete(pinned, key)
				pinned[to] = p
			}
		case op == 96 && random.IntN(20) == 0:
			limit := uint32(random.IntN(400))
			truncateCache(tls, cache, limit)
			for key := range pinned {
				if key >= limit {
					delete(pinned, key)
				}
			}
		case op == 97 && random.IntN(20) == 0:
			shrinkCache(tls, cache)
			if n := countCache(tls, cache); int(n) != len(pinned) {
				t.Fatalf("%d pages are left of %d in use", n, len(pinned))
			}
		case op == 98 && random.IntN(20) == 0:
			sizeCache(tls, cache, int32(50+random.IntN(100)))
			sizeCache(tls, cache, 100)
		}
		if c := at[pageCache](cache); int(c.pages-c.unused) != len(pinned) || c.pages > max(100, uint32(len(pinned))) {
			t.Fatalf("%d pages, %d unused, %d pinned", c.pages, c.unused, len(pinned))
		}
	}
	destroyCache(tls, cache)
	if n := cachedPages.Load(); n != before {
		t.Errorf("%d pages are left", n-before)
	}
}

// Connections use this package's cache and memory.
func TestOwnMemory(t *testing.T) {
	before := cachedPages.Load()
	c, err := Open(Source{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Script("CREATE TABLE t(x); INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if cachedPages.Load() == before {
		t.Error("SQLite uses a cache of its own")
	}
	p := lib.Xsqlite3_malloc(c.tls, 100)
	if n := allocated(p); n != 104 {
		t.Errorf("100 bytes are %d", n)
	}
	lib.Xsqlite3_free(c.tls, p)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
