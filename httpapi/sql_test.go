package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSQLReadOnly checks that statements that change data are refused, whoever sends
// them.
func TestSQLReadOnly(t *testing.T) {
	w := newContractClient(t)
	w.request(t, 200, "POST", "/api/agents/default/sql/execute", `{"query":"SELECT 1","read_only":true}`)
	for _, query := range []string{
		"DELETE FROM contacts",
		"/* x */ WITH a AS (SELECT 1) INSERT INTO contacts(id) SELECT 1",
		"EXPLAIN",
	} {
		w.request(
			t,
			map[bool]int{true: 400, false: 403}[query == "EXPLAIN"],
			"POST",
			"/api/agents/default/sql/execute",
			`{"read_only":true,"query":`+quoted(query)+`}`,
		)
	}
}

// TestSQLAsCSV requests rows as CSV: numbers unchanged, formulas as text, and errors as
// JSON.
func TestSQLAsCSV(t *testing.T) {
	_, server := openService(t)
	ts := httptest.NewServer(server.Handler())
	defer ts.Close()
	ask := func(body string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			ts.URL+"/api/agents/default/sql/execute",
			strings.NewReader(body),
		)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "text/csv")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			text = append(text, " (cut)"...)
		}
		return response, string(text)
	}
	for body, want := range map[string]string{
		`{"query":"SELECT -1 AS n, 2.5 AS f, NULL AS none, '=1+1' AS formula, ? ` +
			`AS text","params":["a, \"b\""]}`: "n,f,none,formula,text\n-1,2.5,,'=1+1,\"a, \"\"b\"\"\"\n",
		`{"query":"SELECT '＝1' AS \"=cmd()\", char(10) || ` +
			`'=1' AS \"＠x\", '－5' AS n"}`: "'=cmd(),'＠x,n\n'＝1,\"'\n=1\",'－5\n",
		`{"query":"SELECT id, name FROM contacts"}`: "id,name\n",
	} {
		if r, text := ask(body); r.StatusCode != 200 ||
			text != want ||
			r.Header.Get("Content-Disposition") != "attachment; filename=default-rows.csv" ||
			!strings.HasPrefix(r.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %d %q %v", body, r.StatusCode, text, r.Header)
		}
	}
	if r, text := ask(
		`{"query":"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000) SELECT x FROM c"}`,
	); r.StatusCode != 200 || strings.Count(text, "\n") != 20_001 {
		t.Errorf("%d, %d lines", r.StatusCode, strings.Count(text, "\n"))
	}
	if r, text := ask(
		`{"query":"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000) SELECT x FROM c"}`,
	); r.StatusCode != 200 || !strings.HasSuffix(text, " (cut)") {
		t.Errorf("too many rows end as if they were complete: %d, %d bytes", r.StatusCode, len(text))
	}
	for body, status := range map[string]int{
		`{"query":"SELECT nothing"}`:         400,
		`{"query":""}`:                       400,
		`{"query":"DELETE FROM contacts"}`:   403,
		`{"query":"SELECT * FROM _secrets"}`: 403,
	} {
		if r, text := ask(body); r.StatusCode != status || !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s: %d %s", body, r.StatusCode, text)
		}
	}
}
