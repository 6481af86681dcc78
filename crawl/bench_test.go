package crawl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"satchel/agent"
	"satchel/vector/document"
)

// smallPages returns 50 pages of about 5 kB.
func smallPages() []string {
	filler := strings.Repeat("A sentence about the harbour and its bakery. ", 100)
	pages := make([]string, 50)
	for i := range pages {
		links := []string{"/", fmt.Sprintf("/%d", (i+1)%50), fmt.Sprintf("/%d", (i*7)%50)}
		if i == 0 {
			for k := range 50 {
				links = append(links, fmt.Sprintf("/%d", k))
			}
		}
		pages[i] = strings.Replace(pageOf(fmt.Sprintf("page %d", i), links...), "</p>", "</p><p>"+filler+"</p>", 1)
	}
	return pages
}

// docsPages returns 50 pages of documentation of 30 to 60 kB each, like those of
// generators: a navigation bar, a tree of all pages beside the text, sections of
// prose, highlighted code, tables and lists, links to the next page, a footer.
func docsPages() []string {
	var tree strings.Builder
	for i := range 50 {
		fmt.Fprintf(
			&tree,
			`<li class="nav-item depth-%d"><a class="nav-link" href="/%d"><span class="nav-label">Chapter %d: `+
				`the harbour</span></a></li>`+"\n",
			i%3,
			i,
			i,
		)
	}
	pages := make([]string, 50)
	for i := range pages {
		var b strings.Builder
		fmt.Fprintf(&b, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Chapter %d — Harbour Docs</title>
<link rel="stylesheet" href="/style.css"><script>window.theme=localStorage.getItem("theme");</script></head><body class="docs">
<header class="bar"><a href="/" class="logo">Harbour</a><nav><a href="/1">Guide</a><a href="/2">Reference</a></nav></header>
<div class="layout"><nav class="sidebar"><ul>%s</ul></nav><main><article><h1 id="top">Chapter %d<a class="headerlink" href="#top">¶</a></h1>`, i, tree.String(), i)
		for s := range 12 + i%17 {
			fmt.Fprintf(&b, `<section id="s%d"><h2>Moor a boat by its number %d<a class="headerlink" href="#s%d">¶</a></h2>
<p>Boat <code class="literal">%d.%d</code> is moored at the <em>third</em> pier of the harbour, which <a href="/%d#s1">another chapter</a> tells more about. `, s, s, s, i, s, (i+s)%50)
			b.WriteString(strings.Repeat(
				"Whoever comes late finds the lines where the master left them &amp; a lamp beside. ",
				5,
			))
			fmt.Fprintf(&b, `</p><div class="highlight-python"><pre><span class="k">def</span> <span class="nf">moor</span><span class="p">(</span><span class="n">boat</span><span class="p">,</span> <span class="n">pier</span><span class="o">=</span><span class="mi">%d</span><span class="p">):</span>
    <span class="k">for</span> <span class="n">line</span> <span class="ow">in</span> <span class="n">boat</span><span class="o">.</span><span class="n">lines</span><span class="p">:</span>
        <span class="n">pier</span><span class="o">.</span><span class="n">tie</span><span class="p">(</span><span class="n">line</span><span class="p">)</span>
</pre></div><ul><li>ropes of <b>hemp</b></li><li>fenders, see <a href="/%d">there</a></li></ul>
<table><thead><tr><th>Pier</th><th>Depth</th></tr></thead><tbody><tr><td>one</td><td>%d m</td></tr><tr><td>two</td><td>4 m</td></tr></tbody></table></section>`, s, (i+2*s)%50, s)
		}
		fmt.Fprintf(
			&b,
			`</article><div class="pagination"><a href="/%d">Next</a></div></main></div><footer>Harbour Docs, `+
				`all rights reserved.</footer></body></html>`,
			(i+1)%50,
		)
		pages[i] = b.String()
	}
	return pages
}

// benchSite serves pages under their numbers, the first one also as the start.
func benchSite(b *testing.B, pages []string) string {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		if r.URL.Path != "/" {
			var err error
			if n, err = strconv.Atoi(r.URL.Path[1:]); err != nil {
				http.NotFound(w, r)
				return
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, pages[n])
	}))
	b.Cleanup(site.Close)
	return site.URL
}

// linksOnly is document.ReadPage with a short text.
func linksOnly(ctx context.Context, address, media string, body []byte) (agent.PageContent, error) {
	page, err := document.ReadPage(ctx, address, media, body)
	page.Text = address
	return page, err
}

// BenchmarkCrawl compares crawls of 50 pages with a plain colly crawl of the same
// pages, alternating. All use two connections and no delays.
//
// "crawl" is the complete crawl of a source: robots.txt, links checked against plan
// and robots.txt, canonical URLs, text extracted as Markdown by document.ReadPage,
// hashed, compared and stored on disk. "walk" is the same with hardly any text. Neither
// embeds. "colly" visits the pages asynchronously, follows a[href] by OnHTML and
// stores nothing.
func BenchmarkCrawl(b *testing.B) {
	for _, site := range []struct {
		name  string
		pages []string
	}{{"docs", docsPages()}, {"small", smallPages()}} {
		b.Run(site.name, func(b *testing.B) {
			url := benchSite(b, site.pages)
			crawl, walk := benchCrawler(b, url, document.ReadPage), benchCrawler(b, url, linksOnly)
			var elapsed [3]time.Duration
			for b.Loop() {
				for i, side := range []func() time.Duration{
					crawl,
					walk,
					func() time.Duration { return bareColly(b, url) },
				} {
					elapsed[i] += side()
				}
			}
			size := 0
			for _, page := range site.pages {
				size += len(page)
			}
			b.ReportMetric(float64(size)/50/1024, "KB/page")
			for i, name := range []string{"crawl", "walk", "colly"} {
				b.ReportMetric(50*float64(b.N)/elapsed[i].Seconds(), name+"-pages/s")
				if i < 2 {
					b.ReportMetric(elapsed[2].Seconds()/elapsed[i].Seconds(), name+"/colly")
				}
			}
		})
	}
}

// benchCrawler returns a function that crawls a site once.
func benchCrawler(
	b *testing.B,
	site string,
	extract func(context.Context, string, string, []byte) (agent.PageContent, error),
) func() time.Duration {
	folder := openFolder(b, b.TempDir())
	c := newCrawler(b, folder, func(o *Options) { o.Extract = extract })
	db := newAgent(b, folder, "bench")
	return func() time.Duration {
		id := create(b, db, planOf(site))
		start := time.Now()
		if err := c.Wait(context.Background(), db); err != nil {
			b.Fatal(err)
		}
		elapsed := time.Since(start)
		if o := outcomeOf(b, db, id, site); o.PageCount != 50 {
			b.Fatalf("%d pages", o.PageCount)
		}
		return elapsed
	}
}

func bareColly(b *testing.B, site string) time.Duration {
	var pages atomic.Int64
	start := time.Now()
	c := colly.NewCollector(colly.Async(true))
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 2}); err != nil {
		b.Fatal(err)
	}
	// colly rejects visited pages
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	c.OnScraped(func(*colly.Response) { pages.Add(1) })
	if err := c.Visit(site + "/"); err != nil {
		b.Fatal(err)
	}
	c.Wait()
	elapsed := time.Since(start)
	if pages.Load() < 50 {
		b.Fatalf("%d pages", pages.Load())
	}
	return elapsed
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
