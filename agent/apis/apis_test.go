package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/agent/openapi"
	"satchel/store"
)

// TestMain is also the entry point of the child that reads descriptions.
func TestMain(m *testing.M) {
	if openapi.RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// header is a credential that fits any host.
type header struct{}

func (header) Fits(*url.URL) bool { return true }
func (header) Apply(r *http.Request) error {
	r.Header.Set("X-Key", "s3cret-s3cret")
	return nil
}
func (header) Renew(context.Context) (bool, error) { return false, nil }
func (header) Secrets() []string                   { return []string{"s3cret-s3cret"} }

func open(t *testing.T) (*store.DB, *APIs) {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f, err := store.Open(store.Options{Path: t.TempDir(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f.Default(), New(store.Env{
		Folder:      f,
		Allow:       agent.MustAddressRanges("127.0.0.0/8"),
		Log:         quiet,
		Version:     "1",
		Credentials: func(context.Context, *store.DB, string) (egress.Credential, error) { return header{}, nil },
	})
}

func description(server string, operations ...string) string {
	paths := map[string]any{}
	for _, name := range operations {
		id, summary, _ := strings.Cut(name, ":")
		paths["/"+id+"/{id}"] = map[string]any{
			"get": map[string]any{"operationId": id, "summary": summary, "tags": []string{"t" + id[:1]}},
		}
	}
	raw, _ := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Shop", "version": "1"},
		"servers": []any{map[string]any{"url": server}},
		"paths":   paths,
	})
	return string(raw)
}

func TestUpdate(t *testing.T) {
	db, a := open(t)
	var document string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, document)
	}))
	defer server.Close()
	document = description("/v1", "orders:List orders", "customers:List customers")
	made, err := a.Create(t.Context(), db, Draft{Name: "shop", URL: server.URL + "/openapi.json"})
	if err != nil || made.ServerURL != server.URL+"/v1" || made.Operations != 2 {
		t.Fatalf("got %+v %v", made, err)
	}
	if _, err := a.Create(t.Context(), db, Draft{
		Name: "SHOP",
		URL:  server.URL,
	}); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := db.CreateOperationTools(t.Context(), "shop", []string{"orders"}, "shop_"); err != nil {
		t.Fatal(err)
	}
	again := func(c Change) Updated {
		t.Helper()
		u, err := a.Update(t.Context(), db, "shop", c)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	document = description("/v1", "orders:List all orders", "refunds:List refunds")
	if u := again(Change{}); fmt.Sprint(u.Added, u.Removed, u.Changed, u.Confirm) != "[refunds] [customers] [orders]" ||
		u.Operations != 2 {
		t.Errorf("got %+v", u)
	}
	document = description("/v2", "refunds:List refunds")
	u := again(Change{})
	if u.Confirm == "" || len(u.Reasons) != 2 || u.ServerURL != server.URL+"/v1" || u.Operations != 2 {
		t.Errorf("needs confirmation: %+v", u)
	}
	if _, o, err := db.Operation(t.Context(), "shop", "orders"); err != nil || o.Summary != "List all orders" {
		t.Errorf("changed before confirmation: %v", err)
	}
	confirm := u.Confirm
	document = description("/v3", "refunds:List refunds")
	if u := again(Change{Confirm: confirm}); u.Confirm == "" || u.Confirm == confirm {
		t.Errorf("another description was confirmed: %+v", u)
	}
	document = description("/v2", "refunds:List refunds")
	if u := again(Change{Confirm: confirm}); u.Confirm != "" || u.ServerURL != server.URL+"/v2" || u.Operations != 1 {
		t.Errorf("after confirmation: %+v", u)
	}
	if u := again(Change{Name: agent.Some("store")}); u.Name != "store" || u.Operations != 1 {
		t.Errorf("renamed: %+v", u)
	}
	if err := db.DeleteAPI(t.Context(), "store"); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("deleted although a tool uses it: %v", err)
	}
}

func TestRefusedAPIs(t *testing.T) {
	db, a := open(t)
	for name, c := range map[string]struct {
		draft Draft
		field string
	}{
		"empty":             {Draft{Name: "a"}, "url"},
		"both":              {Draft{Name: "a", URL: "http://127.0.0.1:1", Document: "x"}, "url"},
		"a private address": {Draft{Name: "a", URL: "http://10.0.0.1/"}, "url"},
		"no description":    {Draft{Name: "a", Document: "hello"}, "document"},
		"no server":         {Draft{Name: "a", Document: description("/v1", "orders")}, "server"},
		"a private server":  {Draft{Name: "a", Document: description("http://169.254.169.254/", "orders")}, "server"},
		"an open variable": {
			Draft{Name: "a", Document: description("https://{tenant}.shop.test", "orders")},
			"server",
		},
		"an unknown secret": {
			Draft{Name: "a", Document: description("https://shop.test", "orders"), Credential: "none"},
			"credential",
		},
		"a secret in server": {
			Draft{Name: "a", Document: description("/", "orders"), Server: "https://a:b@shop.test"},
			"server",
		},
	} {
		_, err := a.Create(t.Context(), db, c.draft)
		if agent.ErrorCode(err) != agent.CodeValidation || !strings.Contains(fmt.Sprintf("%+v", err), c.field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The credential of an API is sent only to the host of its server, even if it fits
// others, and is not sent along with redirects.
func TestCredentialGoesToTheServerOnly(t *testing.T) {
	db, a := open(t)
	seen := map[string]string{}
	note := func(w http.ResponseWriter, r *http.Request) { seen[r.Host] = r.Header.Get("X-Key") }
	other := httptest.NewServer(http.HandlerFunc(note))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(w, r)
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer server.Close()
	made, err := a.Create(t.Context(), db, Draft{Name: "shop", Document: description(server.URL, "orders")})
	if err != nil {
		t.Fatal(err)
	}
	api, o, err := db.Operation(t.Context(), made.ID, "orders")
	if err != nil {
		t.Fatal(err)
	}
	req, err := a.Request(t.Context(), db, &api, &o, Call{
		Arguments:  map[string]any{"id": "7"},
		Credential: "any",
		Key:        "k",
	})
	if err != nil || req.Header.Get("Idempotency-Key") != "k" {
		t.Fatal(req, err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if seen[req.URL.Host] != "s3cret-s3cret" || seen[strings.TrimPrefix(other.URL, "http://")] != "" || len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

func TestFind(t *testing.T) {
	db, a := open(t)
	made, err := a.Create(t.Context(), db, Draft{
		Name: "shop",
		Document: description(
			"https://shop.test",
			"orders:List orders",
			"customers:List customers",
			"order_delete:Remove one order",
			"ping:Check",
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"list orders":     "orders,customers,order_delete",
		"remove an order": "order_delete,orders",
		"ping":            "ping",
		"zebra":           "",
		"":                "customers,order_delete,orders,ping",
	} {
		found, err := a.Find(t.Context(), db, made.ID, words, nil)
		var ids []string
		for _, f := range found {
			ids = append(ids, f.Operation)
		}
		if got := strings.Join(ids, ","); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", words, got, err, want)
		}
		if len(found) > 0 && !strings.Contains(string(found[0].Parameters), `"id"`) {
			t.Errorf("%q: without arguments: %s", words, found[0].Parameters)
		}
	}
	if found, err := a.Find(t.Context(), db, made.ID, "list orders", &agent.APIAllow{
		Tags:    []string{"tc"},
		Methods: []string{"get"},
	}); err != nil ||
		len(found) != 1 ||
		found[0].Operation != "customers" {
		t.Errorf("got %v %v", found, err)
	}
}
