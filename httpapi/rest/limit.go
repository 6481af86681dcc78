package rest

import (
	"hash/maphash"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// window is the length of a rate window. A client's window in a class is fixed: it begins
// with the client's first request after the previous one, at the full second.
const (
	window        = 60 * time.Second
	windowSeconds = int64(window / time.Second)
)

// maxClients limits the clients that are counted individually. Beyond it, new clients
// share 4096 counters, so that a flood of addresses uses no more memory.
const maxClients = 50_000

// Limiter counts requests by client and class. A nil Limiter counts nothing.
type Limiter struct {
	limits  map[Class]int // requests per window; missing classes are not limited; nil: nothing is counted
	proxies []netip.Prefix
	now     func() time.Time
	seed    maphash.Seed

	mu      sync.Mutex
	counts  map[client]count
	cleanup int64 // when counts of ended windows are removed next
}

type client struct {
	class  Class
	prefix netip.Prefix
	name   string // counted instead of an address
	bucket uint16 // one of the shared counters, else 0
}

// count is the requests of a client in its window.
type count struct {
	taken int
	end   int64 // of the window, in Unix time
}

// InboundLimit is how many posts per minute one gateway accepts, and how many calls of
// incoming webhooks per minute one client may make.
const InboundLimit = 600

// NewLimiter returns a limiter of requests per minute by class, which counts nothing if
// limits is nil. X-Forwarded-For is trusted as far as it was set by one of the proxies.
func NewLimiter(limits map[string]int, proxies []netip.Prefix, now func() time.Time) *Limiter {
	l := &Limiter{
		proxies: proxies,
		now:     now,
		seed:    maphash.MakeSeed(),
		counts:  map[client]count{},
	}
	if limits == nil {
		return l
	}
	l.limits = map[Class]int{}
	for name, n := range limits {
		l.limits[Class(name)] = n
	}
	l.limits[Inbound] = InboundLimit
	return l
}

func (l *Limiter) off() bool {
	return l == nil || l.limits == nil
}

// take counts a request and returns how many are left and when the window ends; left is
// negative if the request is over the limit.
func (l *Limiter) take(c Class, key client) (limit, remaining int, reset time.Time) {
	limit = l.limits[c]
	remaining, reset = l.takeFrom(limit, c, key)
	return limit, remaining, reset
}

func (l *Limiter) takeFrom(limit int, class Class, key client) (remaining int, reset time.Time) {
	now := l.now().Unix()
	key.class = class
	l.mu.Lock()
	defer l.mu.Unlock()
	if now >= l.cleanup || l.cleanup > now+windowSeconds { // the latter if the clock was set back
		maps.DeleteFunc(l.counts, func(_ client, n count) bool { return n.ended(now) })
		l.cleanup = now + windowSeconds
	}
	if _, known := l.counts[key]; !known && len(l.counts) >= maxClients {
		key = client{class: class, bucket: 1 + uint16(maphash.Comparable(l.seed, key)%4096)}
	}
	n := l.counts[key]
	if n.ended(now) {
		n = count{end: now + windowSeconds}
	}
	if n.taken <= limit {
		n.taken++
	}
	l.counts[key] = n
	return limit - n.taken, time.Unix(n.end, 0)
}

// ended reports whether the window has ended. One that ends later than a whole window
// from now began before the clock was set back.
func (n count) ended(now int64) bool {
	return now >= n.end || n.end > now+windowSeconds
}

// network returns the network that counts as one client: an IPv4 address, or an IPv6 /64.
func network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// client returns whom a request counts for: the name or, without one, the address that it
// comes from.
func (l *Limiter) client(r *http.Request, name string) client {
	if name != "" {
		return client{name: name}
	}
	return client{prefix: network(l.address(r))}
}

// Check counts the request, sets the three headers, and refuses requests over
// the limit. It counts for name or, without one, for the client's address.
func (l *Limiter) Check(c echo.Context, class Class, name string) error {
	if l.off() || class == Unlimited {
		return nil
	}
	limit, remaining, reset := l.take(class, l.client(c.Request(), name))
	h := c.Response().Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(remaining, 0)))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	if remaining >= 0 {
		return nil
	}
	wait := l.wait(reset)
	h.Set(echo.HeaderRetryAfter, strconv.Itoa(wait))
	return tooMany(limit, wait)
}

// Count counts a request in a class in addition to that of its route, for instance for a
// tool call, and refuses it if it is over the limit.
func (l *Limiter) Count(c echo.Context, class Class) error {
	if l.off() || l.limits[class] == 0 {
		return nil
	}
	limit, remaining, reset := l.take(class, l.client(c.Request(), ""))
	if remaining >= 0 {
		return nil
	}
	return tooMany(limit, l.wait(reset))
}

// CountNamed counts a request for a name, against a separate limit.
func (l *Limiter) CountNamed(c echo.Context, class Class, name string, limit int) error {
	if l.off() {
		return nil
	}
	remaining, reset := l.takeFrom(limit, class, client{name: name})
	if remaining >= 0 {
		return nil
	}
	wait := l.wait(reset)
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wait))
	return tooMany(limit, wait)
}

// wait returns the number of seconds until a window ends.
func (l *Limiter) wait(reset time.Time) int {
	return max(int(reset.Sub(l.now()).Seconds()+0.999), 1)
}

func tooMany(limit, wait int) error {
	return agent.Errorf(agent.CodeRateLimited, "too many requests: the limit is %d per minute", limit).
		With("limit", limit).With("window_seconds", windowSeconds).With("retry_after", wait)
}

// address returns the address that a request comes from. X-Forwarded-For is read from its
// end, and trusted only as far as it was set by configured proxies.
func (l *Limiter) address(request *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		host = request.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !l.trustsProxy(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(request.Header.Values(echo.HeaderXForwardedFor), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = hop
		if !l.trustsProxy(hop) {
			break
		}
	}
	return addr
}

// Address returns the address that a request comes from, as far as it is known.
func (l *Limiter) Address(r *http.Request) netip.Addr {
	if l == nil {
		l = &Limiter{}
	}
	return l.address(r)
}

// Network returns the network that a request comes from, which counts as one client.
func (l *Limiter) Network(r *http.Request) netip.Prefix {
	return network(l.Address(r))
}

func (l *Limiter) trustsProxy(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range l.proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
