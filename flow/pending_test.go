package flow

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// journalRows returns how many commits the results in a data folder took.
func journalRows(t *testing.T, folder string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "agents", "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	file, err := sqlite.Open(sqlite.Source{Path: files[0], Mode: sqlite.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.QueryRow("SELECT count(*) FROM _journal").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The results of scripts without side effects share commits.
func TestScriptsShareCommits(t *testing.T) {
	for name, test := range map[string]struct {
		kind, data  string
		least, most int
	}{
		"code":             {"code", `{"code":"return {n: item.n}"}`, 1, 4},
		"code that throws": {"code", `{"code":"throw new Error(item.n)","on_error":"continue"}`, 1, 4},
		"condition":        {"if-else", `{"condition":"item.n > 5"}`, 1, 4},
		"large results":    {"code", `{"code":"return 'x'.repeat(5e4)"}`, 8, 15},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			folder, e := openAt(t, path)
			e.commitInterval = time.Hour
			db := folder.Default()
			w := createWorkflow(t, db, e, loopOver(test.kind, test.data))
			mustComplete(t, execute(t, db, e, w, numbered(200, 10)))
			if n := journalRows(t, path); n < test.least || n > test.most {
				t.Errorf("200 results took %d commits", n)
			}
		})
	}
}

// Everything before a script is committed before the script fetches.
func TestFetchesBehindCommits(t *testing.T) {
	db, e := open(t)
	e.commitInterval = time.Hour
	var id string
	seen := make(chan string, 100)
	started := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		<-started
		_, results, err := db.Execution(q.Context(), id)
		if err != nil {
			t.Error(err)
		}
		for _, r := range results {
			if r.NodeID == "a" && strings.Contains(string(r.Output), strings.TrimPrefix(q.URL.Path, "/")) {
				seen <- q.URL.Path
			}
		}
	}))
	t.Cleanup(other.Close)
	w := createWorkflow(t, db, e, fmt.Sprintf(`t trigger
		l loop {"items":[1,2,3]}
		a code {"code":"return {drawn: String(Math.random())}"}
		b code {"code":"await Promise.all([1, 2].map(() => globalThis['fe' + 'tch']('%s/' + nodes.a.drawn)))"}
		t -> l
		l:loop -> a
		a -> b
		b -> l`, other.URL))
	id = startWorkflow(t, db, e, w, "{}")
	close(started)
	if x, _ := waitForEnd(t, db, e, id); x.Status != agent.ExecutionComplete {
		t.Fatal(x.Status, x.Error)
	}
	if len(seen) != 6 {
		t.Errorf("%d of 6 requests found the result that they name in the file", len(seen))
	}
}

// The result of a script that has fetched is committed as soon as the script
// ends; that of one that has not is committed soon, even while the next one
// runs.
func TestResultsDuringALongScript(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(other.Close)
	for name, test := range map[string]struct {
		code string
		hold time.Duration
	}{
		"fetched":     {fmt.Sprintf(`{"code":"await fetch('%s')"}`, other.URL), time.Hour},
		"only once":   {`{"code":"return 1","at_most_once":true}`, time.Hour},
		"not fetched": {`{"code":"return 1"}`, commitInterval},
	} {
		t.Run(name, func(t *testing.T) {
			db, e := open(t)
			e.commitInterval = test.hold
			w := createWorkflow(
				t,
				db,
				e,
				"t trigger\na code "+test.code+
					"\nb code {\"code\":\"for (;;) {}\",\"timeout_ms\":60000}\nt -> a\na -> b",
			)
			id := startWorkflow(t, db, e, w, "{}")
			waitForStatus(t, db, e, id, "a", agent.NodeSuccess)
			if _, err := e.Terminate(t.Context(), db, id); err != nil {
				t.Fatal(err)
			}
		})
	}
}
