package sqlite

import (
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// The cache of files' pages; see https://www.sqlite.org/c3ref/pcache_methods2.html.
// SQLite's own cache, the way package lib is built, is shared by all connections of
// the process, behind one lock. Here each connection has its own, which only the
// goroutine using it accesses.

// keptPages is how many pages all caches may hold together. Beyond that, those
// larger than smallCache shrink to it.
const (
	keptPages  = (40 << 20) / pageSlot
	smallCache = 24
)

// cachedPages counts the pages in all caches.
var cachedPages atomic.Int64

// cachedPage is SQLite's handle of a page. It is followed by the page's content and
// SQLite's data about it.
type cachedPage struct {
	content, extra uintptr // as in sqlite3_pcache_page
	next           uintptr // in its bucket
	newer, older   uintptr // in the list of unpinned pages; 0 while it is pinned
	key            uint32
}

// pageCache is the cache of one file for one connection. It is in SQLite's memory.
type pageCache struct {
	content, extra uintptr // sizes of both
	purgeable      bool    // unpinned pages may be dropped
	limit          uint32  // maximum number of pages
	pages, unused  uint32
	buckets        uint32 // a power of two
	table          uintptr
	ends           cachedPage // of the list of unpinned pages: older is the newest
}

const minBuckets = 64

type (
	cacheInitFunc     = func(tls *libc.TLS, _ uintptr) int32
	cacheShutdownFunc = func(tls *libc.TLS, _ uintptr)
	cacheCreateFunc   = func(tls *libc.TLS, content, extra, purgeable int32) uintptr
	cacheSizeFunc     = func(tls *libc.TLS, cache uintptr, most int32)
	cacheCountFunc    = func(tls *libc.TLS, cache uintptr) int32
	cacheFetchFunc    = func(tls *libc.TLS, cache uintptr, key uint32, create int32) uintptr
	cacheUnpinFunc    = func(tls *libc.TLS, cache, page uintptr, discard int32)
	cacheRekeyFunc    = func(tls *libc.TLS, cache, page uintptr, before, key uint32)
	cacheTruncateFunc = func(tls *libc.TLS, cache uintptr, limit uint32)
	cacheFunc         = func(tls *libc.TLS, cache uintptr)
)

// pageCacheMethods returns the methods of the cache for SQLite.
func pageCacheMethods() lib.Tsqlite3_pcache_methods2 {
	return lib.Tsqlite3_pcache_methods2{
		FiVersion:   1,
		FxInit:      pointerTo[cacheInitFunc](initCache),
		FxShutdown:  pointerTo[cacheShutdownFunc](shutdownCache),
		FxCreate:    pointerTo[cacheCreateFunc](createCache),
		FxCachesize: pointerTo[cacheSizeFunc](sizeCache),
		FxPagecount: pointerTo[cacheCountFunc](countCache),
		FxFetch:     pointerTo[cacheFetchFunc](fetchPage),
		FxUnpin:     pointerTo[cacheUnpinFunc](unpinPage),
		FxRekey:     pointerTo[cacheRekeyFunc](rekeyPage),
		FxTruncate:  pointerTo[cacheTruncateFunc](truncateCache),
		FxDestroy:   pointerTo[cacheFunc](destroyCache),
		FxShrink:    pointerTo[cacheFunc](shrinkCache),
	}
}

func initCache(*libc.TLS, uintptr) int32 { return lib.SQLITE_OK }

func shutdownCache(*libc.TLS, uintptr) {}

func createCache(tls *libc.TLS, content, extra, purgeable int32) uintptr {
	address := countedMalloc(tls, int32(unsafe.Sizeof(pageCache{})))
	if address == 0 {
		return 0
	}
	*at[pageCache](address) = pageCache{
		content:   uintptr(content),
		extra:     uintptr(extra),
		purgeable: purgeable != 0,
	}
	c := at[pageCache](address)
	ends := address + unsafe.Offsetof(c.ends)
	c.ends.newer, c.ends.older = ends, ends
	if !c.grow(tls) {
		countedFree(tls, address)
		return 0
	}
	return address
}

// grow doubles the buckets and reports whether there was memory for that.
func (c *pageCache) grow(tls *libc.TLS) bool {
	buckets := max(minBuckets, 2*c.buckets)
	table := countedMalloc(tls, int32(buckets)*int32(unsafe.Sizeof(uintptr(0))))
	if table == 0 {
		return false
	}
	clear(view(table, int(buckets)*int(unsafe.Sizeof(uintptr(0)))))
	before := *c
	c.table, c.buckets = table, buckets
	for i := range before.buckets {
		for p := *before.bucket(i); p != 0; {
			page := at[cachedPage](p)
			next, b := page.next, c.bucket(page.key)
			page.next, *b = *b, p
			p = next
		}
	}
	if before.table != 0 {
		countedFree(tls, before.table)
	}
	return true
}

func (c *pageCache) bucket(key uint32) *uintptr {
	return at[uintptr](c.table + uintptr(key&(c.buckets-1))*unsafe.Sizeof(uintptr(0)))
}

func sizeCache(tls *libc.TLS, cache uintptr, most int32) {
	c := at[pageCache](cache)
	c.limit = uint32(max(most, 0))
	for c.purgeable && c.pages > c.limit && c.unused > 0 {
		c.remove(tls, c.ends.newer)
	}
}

func countCache(_ *libc.TLS, cache uintptr) int32 {
	return int32(at[pageCache](cache).pages)
}

func fetchPage(tls *libc.TLS, cache uintptr, key uint32, create int32) uintptr {
	c := at[pageCache](cache)
	for p := *c.bucket(key); p != 0; {
		page := at[cachedPage](p)
		if page.key == key {
			c.use(page)
			return p
		}
		p = page.next
	}
	const onlyIfEasy = 1
	if create == 0 || create == onlyIfEasy && uint64(c.pages-c.unused) >= uint64(c.limit)*9/10 {
		return 0
	}
	return c.add(tls, key)
}

// use removes a page from the list of unpinned pages, if it is there.
func (c *pageCache) use(page *cachedPage) {
	if page.newer == 0 {
		return
	}
	at[cachedPage](page.newer).older = page.older
	at[cachedPage](page.older).newer = page.newer
	page.newer, page.older = 0, 0
	c.unused--
}

// add returns a new page, reusing the memory of the least recently used one if there
// are enough.
func (c *pageCache) add(tls *libc.TLS, key uint32) uintptr {
	if c.pages >= c.buckets {
		c.grow(tls) // without it the buckets are just fuller
	}
	for c.purgeable &&
		c.unused > 1 &&
		c.pages > smallCache &&
		cachedPages.Load() > keptPages {
		c.remove(tls, c.ends.newer)
	}
	var address uintptr
	enough := c.pages+1 >= c.limit || c.pages >= smallCache && cachedPages.Load() > keptPages
	if c.purgeable && c.unused > 0 && enough {
		address = c.ends.newer
		c.detach(address)
	} else if address = countedMalloc(tls, int32(unsafe.Sizeof(cachedPage{})+c.content+c.extra)); address == 0 {
		return 0
	} else {
		cachedPages.Add(1)
	}
	content := address + unsafe.Sizeof(cachedPage{})
	b := c.bucket(key)
	*at[cachedPage](address) = cachedPage{
		content: content,
		extra:   content + c.content,
		next:    *b,
		key:     key,
	}
	*b = address
	c.pages++
	*at[uintptr](content + c.content) = 0 // tells SQLite that the page is new
	return address
}

// detach removes a page from the cache.
func (c *pageCache) detach(p uintptr) {
	page := at[cachedPage](p)
	c.use(page)
	link := c.bucket(page.key)
	for *link != p {
		link = &at[cachedPage](*link).next
	}
	*link = page.next
	c.pages--
}

func (c *pageCache) remove(tls *libc.TLS, p uintptr) {
	c.detach(p)
	countedFree(tls, p)
	cachedPages.Add(-1)
}

func unpinPage(tls *libc.TLS, cache, p uintptr, discard int32) {
	c := at[pageCache](cache)
	if discard != 0 || c.pages > c.limit {
		c.remove(tls, p)
		return
	}
	page, ends := at[cachedPage](p), cache+unsafe.Offsetof(c.ends)
	page.newer, page.older = ends, c.ends.older
	at[cachedPage](page.older).newer = p
	c.ends.older = p
	c.unused++
}

func rekeyPage(tls *libc.TLS, cache, address uintptr, _, key uint32) {
	c := at[pageCache](cache)
	for other := *c.bucket(key); other != 0; other = at[cachedPage](other).next {
		if other != address && at[cachedPage](other).key == key {
			c.remove(tls, other)
			break
		}
	}
	page := at[cachedPage](address)
	newer, older := page.newer, page.older
	link := c.bucket(page.key)
	for *link != address {
		link = &at[cachedPage](*link).next
	}
	*link = page.next
	b := c.bucket(key)
	page.key, page.next, page.newer, page.older = key, *b, newer, older
	*b = address
}

func truncateCache(tls *libc.TLS, cache uintptr, limit uint32) {
	c := at[pageCache](cache)
	for i := uint32(0); i < c.buckets && c.pages > 0; i++ {
		for p := *c.bucket(i); p != 0; {
			page := at[cachedPage](p)
			next := page.next
			if page.key >= limit {
				c.remove(tls, p)
			}
			p = next
		}
	}
}

func destroyCache(tls *libc.TLS, cache uintptr) {
	truncateCache(tls, cache, 0)
	countedFree(tls, at[pageCache](cache).table)
	countedFree(tls, cache)
}

func shrinkCache(tls *libc.TLS, cache uintptr) {
	for c := at[pageCache](cache); c.unused > 0; {
		c.remove(tls, c.ends.newer)
	}
}
