package crawl

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/agent"
)

func TestNormalize(t *testing.T) {
	for raw, want := range map[string]string{
		"http://Example.COM":                               "http://example.com/",
		"HTTPS://example.com:443/a/../b/./c":               "https://example.com/b/c",
		"http://example.com:443/":                          "http://example.com:443/",
		"http://example.com:80/a?":                         "http://example.com/a",
		"http://example.com/a#part":                        "http://example.com/a",
		"http://example.com/a?x=1&x=2#part":                "http://example.com/a?x=1&x=2",
		"http://example.com/%7euser/%41%2f%c3":             "http://example.com/~user/A%2F%C3",
		"http://example.com/a b/é":                         "http://example.com/a%20b/%C3%A9",
		"http://example.com/a?q=a b\"":                     "http://example.com/a?q=a%20b%22",
		"http://example.com/../../a/..":                    "http://example.com/",
		"http://example.com/a//b/":                         "http://example.com/a//b/",
		"http://example.com/%2e%2e/a":                      "http://example.com/a",
		"http://bücher.example/":                           "http://xn--bcher-kva.example/",
		"http://[2001:DB8::1]:8080/a":                      "http://[2001:db8::1]:8080/a",
		"http://[2001:0db8:0:0::1]/":                       "http://[2001:db8::1]/",
		"http://[fe80::1%25eth0]/":                         "",
		"ftp://example.com/":                               "",
		"mailto:a@example.com":                             "",
		"/relative":                                        "",
		"http://" + strings.Repeat("a", 2000):              "",
		"http://exa%20mple.com/":                           "",
		"http://example.com/" + strings.Repeat("/a", 1000): "",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", raw, err)
			}
			continue
		}
		if got, ok := normalize(u); ok != (want != "") || ok && got != want {
			t.Errorf("%.80s: %.80q %v, want %q", raw, got, ok, want)
		}
	}
}

func TestSite(t *testing.T) {
	s := siteOf(mustURL(t, "https://www.example.com/a"))
	for raw, want := range map[string]bool{
		"http://example.com/":              true,
		"https://example.com:443/b":        true,
		"http://WWW.example.com:80/":       true,
		"http://example.com:8080/":         false,
		"https://docs.example.com/":        false,
		"http://example.com.evil.example/": false,
		"http://example.com:443/":          false,
	} {
		if got := s.contains(mustURL(t, raw)); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
	}
}

func TestNormalizedLinks(t *testing.T) {
	page := agent.PageContent{
		Base:      "http://example.com/base/",
		Canonical: " page ",
		Links: []string{"a&b?c=1&d", "../base/a&b?c=1&d", "//other.example/x",
			"java\nscript:x()", "/ro\not", "http://[::1", "mailto:a@example.com"},
	}
	links, canonical := normalized(&page)
	if want := "http://example.com/base/a&b?c=1&d " +
		"http://other.example/x http://example.com/root"; strings.Join(links, " ") != want {
		t.Errorf("links %q, want %q", links, want)
	}
	if canonical != "http://example.com/base/page" {
		t.Errorf("canonical %q", canonical)
	}
	page.Links = nil
	for i := range 2 * maxLinks {
		page.Links = append(page.Links, strconv.Itoa(i))
	}
	if links, _ = normalized(&page); len(links) != maxLinks {
		t.Errorf("%d links of %d, want %d", len(links), len(page.Links), maxLinks)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		value  string
		want   time.Duration
		later  bool
	}{
		{429, "7", 7 * time.Second, true},
		{429, "", 2 * time.Second, true},
		{503, "7", 7 * time.Second, true},
		{503, "", 0, false},
		{429, "Sat, 21 Nov 2026 12:01:00 GMT", time.Minute, true},
		{429, "Sat, 21 Nov 2026 11:00:00 GMT", 0, true},
		{429, "-5", 2 * time.Second, true},
		{429, "99999999999999999999", 2 * time.Second, true},
		{200, "7", 0, false},
		{500, "7", 0, false},
	} {
		t.Run(fmt.Sprintf("%d %s", c.status, c.value), func(t *testing.T) {
			got, later := retryAfter(&response{status: c.status, header: http.Header{"Retry-After": {c.value}}}, now)
			if got != c.want || later != c.later {
				t.Errorf("%v %v, want %v %v", got, later, c.want, c.later)
			}
		})
	}
}

func TestHostsAreTreatedPolitely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hs := hosts{byName: map[site]*host{}}
		h := hs.acquire(site{}, Politeness{}.orDefaults())
		if hs.acquire(site{}, Politeness{}) != h || cap(h.slots) != 2 {
			t.Error("two crawls of a site do not share its host")
		}
		start := time.Now()
		var starts []time.Duration
		wait := func() {
			if err := h.wait(t.Context()); err != nil {
				t.Error(err)
			}
			starts = append(starts, time.Since(start))
		}
		for range 3 {
			wait()
		}
		h.pause(time.Second)
		wait()
		h.widenDelay(3 * time.Second)
		h.widenDelay(time.Second)
		wait()
		wait()
		want := []time.Duration{0, 100e6, 200e6, 1200e6, 1300e6, 4300e6}
		for i := range want {
			if starts[i] != want[i] {
				t.Errorf("requests start at %v, want %v", starts, want)
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := h.wait(ctx); err == nil {
			t.Error("a wait continues after its context ended")
		}
		hs.release(site{})
		hs.release(site{})
		if len(hs.byName) != 0 {
			t.Error("a host is still in memory")
		}
	})
}

func TestCheckPatterns(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"/a/**": true, "/docs**": true, "**docs**": true, "https://example.com/{a,b}/*": true,
		"/[a-z]*": true, `/a\*`: true, "": false, "  ": false, "/a[": false, "{a": false,
		strings.Repeat("a", 501): false, strings.Repeat("{a,b}", 5): false, "{" + strings.Repeat(",", 21) + "}": false,
	} {
		err := CheckPatterns(&agent.CrawlPlan{IncludePatterns: []string{pattern}})
		if (err == nil) != ok || err != nil && agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%.60q: %v", pattern, err)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/a/../b?c#d", "https://EXAMPLE.com:443/%7e%zz", "http://[::1]:80//",
		"http://bücher.example/?ü", "//x", "http://a/..%2f/%2E%2e/", "http://a?%", "http://a/\x00", "//::",
		"//[::ffff:1.2.3.4%25x]",
	} {
		f.Add(seed)
	}
	base, _ := url.Parse("http://example.com/dir/page?q")
	f.Fuzz(func(t *testing.T, raw string) {
		address, ok := resolve(base, raw)
		if !ok {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q became %q: %v", raw, address, err)
		}
		if u.Fragment != "" ||
			u.User != nil ||
			u.Host == "" ||
			!strings.HasPrefix(u.EscapedPath(), "/") ||
			strings.ContainsAny(address, " \t\r\n\"<>\\#") {
			t.Fatalf("%q became %q", raw, address)
		}
		for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q became %q", raw, address)
			}
		}
		if again, ok := normalize(u); !ok || again != address {
			t.Fatalf("%q became %q, and that %q", raw, address, again)
		}
	})
}

func FuzzGlobs(f *testing.F) {
	for _, seed := range [][2]string{
		{"/docs/**", "/docs/a/b"},
		{"**x**", "/a/x/b"},
		{"{a,b}{c,*}", "/ac"},
		{"[!a-z]\\*", "/1*"},
		{"https://*/**", "/"},
		{"/a***b", "/aab"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		plan := agent.CrawlPlan{IncludePatterns: []string{pattern}}
		u, err := url.Parse("http://example.com" + path)
		if err != nil || len(path) > maxURL || CheckPatterns(&plan) != nil {
			return
		}
		included := globsOf(plan).allow(u)
		excluded := globsOf(agent.CrawlPlan{ExcludePatterns: []string{pattern}}).allow(u)
		if included == excluded {
			t.Fatalf("%q on %q: included %v, excluded %v", pattern, u, included, excluded)
		}
	})
}
