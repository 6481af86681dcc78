package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// rowsOf returns the addresses of a source in the order of their rows, each with its
// position in the queue and its result.
func rowsOf(t *testing.T, db *DB, id string) string {
	t.Helper()
	rows, err := Read(context.Background(), db, func(tx *Tx) ([]string, error) {
		return all(
			tx,
			func(rows *sqlite.Rows) (row string, err error) { return row, rows.Scan(&row) },
			`SELECT concat_ws(' ', url, state, depth, row_number() OVER (ORDER BY depth, turn), target, status, error_code, title, hash, links, changed, pending)
			FROM _pages WHERE source_id = ? ORDER BY seq`,
			id,
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(rows, "\n")
}

// someOutcomes generates random outcomes of a crawl of a site with a few addresses.
func someOutcomes(r *rand.Rand, again bool) []PageOutcome {
	address := func() string { return fmt.Sprintf("/%d", r.IntN(30)) }
	var list []PageOutcome
	for i := range 1 + r.IntN(25) {
		o := PageOutcome{URL: fmt.Sprintf("/%d", i), Depth: min(i, 1+i/8), Status: 200}
		if r.IntN(5) == 0 {
			o.URL = address()
		}
		o.Final = o.URL
		if r.IntN(8) == 0 {
			o.Final = address()
		}
		switch kind := r.IntN(12); {
		case kind == 0:
			o.Problem, o.Skip, o.Status = &agent.SourceError{Code: "UPSTREAM_ERROR", Message: "no"}, r.IntN(2) == 0, 500
			o.Again = r.IntN(3) == 0
		case kind == 1 && o.Final != o.URL:
			o.Queue = true
		case kind < 4 && again:
			o.Known = true
		default:
			text := fmt.Sprintf("text %d", r.IntN(20))
			o.Page = &ReadPage{Title: "T", Text: text, Hash: "hash of " + text, Links: []string{"/1"}, ETag: "e"}
			if r.IntN(3) == 0 {
				o.Same = func(string) bool { return true }
			}
		}
		if i == 0 && r.IntN(3) > 0 { // as on most sites, the start page links to all others
			for k := range 25 {
				o.Links = append(o.Links, fmt.Sprintf("/%d", k+1))
			}
		}
		for range r.IntN(6) {
			o.Links = append(o.Links, address())
		}
		list = append(list, o)
	}
	return list
}

// One commit of several outcomes has the same result as a commit for each.
func TestOutcomesInOneCommitEqualOneByOne(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "pages")
	source := func() string {
		s, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, "site", agent.CrawlPlan{
			URL:      "http://example.com/",
			MaxPages: 50,
			MaxDepth: 5,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID
	}
	put := func(id string, list ...PageOutcome) {
		if _, err := db.PutPages(ctx, id, list, nil); err != nil {
			t.Fatal(err)
		}
	}
	indexed := 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 0))
		together, apart := source(), source()
		for crawl := range 2 {
			list := someOutcomes(r, crawl == 1)
			put(together, list...)
			for _, o := range list {
				put(apart, o)
			}
			got, want := rowsOf(t, db, together), rowsOf(t, db, apart)
			if got != want {
				t.Fatalf("seed %d, crawl %d: in one commit\n%s\none by one\n%s", seed, crawl, got, want)
			}
			indexed += strings.Count(got, " indexed ")
			for _, id := range []string{together, apart} {
				if err := db.Do(ctx, func(tx *Tx) error {
					return tx.forgetCrawl(id)
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if indexed < 200 {
		t.Errorf("only %d pages: the outcomes are not varied enough", indexed)
	}
}

func TestFrontierIsBounded(t *testing.T) {
	ctx := context.Background()
	db := createAgent(t, openFolder(t), "pages")
	s, err := db.CreateCrawlSource(ctx, agent.SourceCrawl, "site", agent.CrawlPlan{
		URL:      "http://example.com/",
		MaxPages: 50,
		MaxDepth: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []PageOutcome
	for i := range 6 { // with 200 links each, half of which are known
		o := PageOutcome{
			URL:   fmt.Sprintf("/%d", i),
			Final: fmt.Sprintf("/%d", i),
			Depth: min(i, 1),
			Page:  &ReadPage{Hash: fmt.Sprint(i), Links: []string{}},
		}
		for k := range 400 {
			o.Links = append(o.Links, fmt.Sprintf("/%d", i*200+k))
		}
		list = append(list, o)
	}
	if _, err := db.PutPages(ctx, s.ID, list, nil); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(rowsOf(t, db, s.ID), "\n")
	if last := rows[len(rows)-1]; len(rows) != maxFrontier ||
		!strings.HasPrefix(last, fmt.Sprintf("/%d ", maxFrontier-1)) {
		t.Errorf("%d addresses, the last %q; want %d, none skipped", len(rows), last, maxFrontier)
	}
}
