package crawl

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"satchel/agent"
)

// benchSite has 50 pages of some 5 kB that link to each other.
func benchSite(b *testing.B) *testSite {
	s := newSite(b)
	filler := strings.Repeat("A sentence about the harbour and its bakery. ", 100)
	for i := range 49 {
		s.page(fmt.Sprintf("/%d", i), fmt.Sprintf("page %d %s", i, filler), "/", fmt.Sprintf("/%d", (i+1)%49), fmt.Sprintf("/%d", (i*7)%49))
	}
	links := make([]string, 49)
	for i := range links {
		links[i] = fmt.Sprintf("/%d", i)
	}
	s.page("/", "start", links...)
	return s
}

// BenchmarkCrawl compares a crawl of 50 pages, each committed to disk, with a
// bare colly loop that keeps nothing. Neither waits between requests.
func BenchmarkCrawl(b *testing.B) {
	b.Run("satchel", func(b *testing.B) {
		s := benchSite(b)
		folder := openFolder(b, b.TempDir())
		c := newCrawler(b, folder, nil)
		db := newAgent(b, folder, "bench")
		for b.Loop() {
			id := create(b, db, planOf(s.URL))
			c.Kick(db)
			if err := c.Wait(context.Background(), db); err != nil {
				b.Fatal(err)
			}
			if o := outcomeOf(b, db, id, s.URL); o.PageCount != 50 {
				b.Fatalf("%d pages", o.PageCount)
			}
			if err := db.DeleteSource(context.Background(), id); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(50*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	})
	b.Run("colly", func(b *testing.B) {
		s := benchSite(b)
		for b.Loop() {
			pages := 0
			c := &colly.Collector{}
			c.Init()
			c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) }) // visited pages are refused
			c.OnScraped(func(*colly.Response) { pages++ })
			if err := c.Visit(s.URL + "/"); err != nil {
				b.Fatal(err)
			}
			if pages != 50 {
				b.Fatalf("%d pages", pages)
			}
		}
		b.ReportMetric(50*float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	})
}

func BenchmarkReadLinks(b *testing.B) {
	base, _ := url.Parse("http://example.com/")
	for _, size := range []int{10 << 10, 1 << 20} {
		unit := `<p>Some text of a page.</p><a href="/page/1?x=2">a link</a>`
		page := []byte(strings.Repeat(unit, size/len(unit)))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				readLinks(base, page)
			}
		})
	}
}

func BenchmarkGlobs(b *testing.B) {
	u, _ := url.Parse("https://example.com/docs/a/b/c/d?x=1")
	for _, n := range []int{1, 100} {
		plan := agent.CrawlPlan{}
		for i := range n {
			plan.ExcludePatterns = append(plan.ExcludePatterns, fmt.Sprintf("/docs/**/x%d", i))
		}
		g := globsOf(plan)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				g.allow(u)
			}
		})
	}
}
