package replica

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent/signature"
)

// fakeS3 is a bucket called "backups" with the part of S3's protocol that is used here:
// signatures are verified, and lists have pages of three.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string][]byte
	away    bool // answers 503
	frozen  bool // the key may only read
}

func newFakeS3(t testing.TB) (*fakeS3, Target) {
	t.Helper()
	f := &fakeS3{objects: map[string][]byte{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	target, err := Open("s3://backups/deep/er?region=eu-central-1&endpoint="+server.URL, testKeys)
	if err != nil {
		t.Fatal(err)
	}
	return f, target
}

func testKeys(name string) string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret/+=key"}[name]
}

func (f *fakeS3) setAway(away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = away
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := sha256.Sum256(body)
	key, inBucket := strings.CutPrefix(r.URL.Path, "/backups/")
	switch {
	case f.away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case err != nil || !signed(r, body) || r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>")
	case !inBucket:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code></Error>")
	case f.frozen && r.Method != http.MethodGet:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
	case r.Method == http.MethodPut:
		f.objects[key] = body
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case key == "":
		_ = xml.NewEncoder(w).Encode(f.list(
			r.URL.Query().Get("prefix"),
			r.URL.Query().Get("delimiter"),
			r.URL.Query().Get("continuation-token"),
		))
	case f.objects[key] == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		_, _ = w.Write(f.objects[key])
	}
}

// signed signs the request again and compares.
func signed(r *http.Request, body []byte) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	again, _ := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	key := signature.AWSKey{ID: testKeys("AWS_ACCESS_KEY_ID"), Secret: testKeys("AWS_SECRET_ACCESS_KEY")}
	return signature.SignAWS(again, key, "eu-central-1", "s3", at) == nil &&
		again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

func (f *fakeS3) list(prefix, delimiter, after string) (p page) {
	var entries []string
	for key := range f.objects {
		rest, ok := strings.CutPrefix(key, prefix)
		if before, _, found := strings.Cut(rest, delimiter); ok && delimiter != "" && found {
			key = prefix + before + delimiter
		}
		if ok && key > after && !slices.Contains(entries, key) {
			entries = append(entries, key)
		}
	}
	slices.Sort(entries)
	if len(entries) > 3 {
		entries, p.IsTruncated, p.NextContinuationToken = entries[:3], true, entries[2]
	}
	for _, e := range entries {
		if delimiter != "" && strings.HasSuffix(e, delimiter) {
			p.CommonPrefixes = append(p.CommonPrefixes, struct{ Prefix string }{e})
		} else {
			p.Contents = append(p.Contents, struct{ Key string }{e})
		}
	}
	return p
}

// Folders and buckets behave the same.
func TestStorages(t *testing.T) {
	t.Parallel()
	_, bucket := newFakeS3(t)
	folder, err := Open(t.TempDir()+"/not/yet", testKeys)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]Target{"bucket": bucket, "folder": folder} {
		s, ctx := target.storage, t.Context()
		if err := s.prepare(false); err != nil {
			t.Fatal(err)
		}
		if all, err := s.folders(ctx); len(all) != 0 || err != nil {
			t.Errorf("%s: empty, it has %v, %v", name, all, err)
		}
		if _, err := s.get(ctx, "a/x"); !errors.Is(err, errNoObject) {
			t.Errorf("%s: %v", name, err)
		}
		want := []string{"a/agent.json", "a/g/0/1.ltx", "a/g/0/2.ltx", "a/g/9/1.ltx", "b/agent.json"}
		for _, key := range want {
			if err := s.put(ctx, key, strings.NewReader("content of "+key), int64(len("content of "+key))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := contentOf(t, s, "a/g/0/2.ltx"); got != "content of a/g/0/2.ltx" {
			t.Errorf("%s: %q", name, got)
		}
		all, err := s.list(ctx, "a/")
		slices.Sort(all)
		if !slices.Equal(all, want[:4]) || err != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		for _, key := range append(want[:4:4], "a/never") {
			if err := s.remove(ctx, key); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if all, err := s.folders(ctx); !slices.Equal(all, []string{"b"}) || err != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}

func contentOf(t *testing.T, s storage, key string) string {
	t.Helper()
	body, err := s.get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestInvalidTargets(t *testing.T) {
	for _, url := range []string{
		"", "https://example.com/x", "s3://", "s3://UPPER/x", "s3://b/x", "s3://backups/../x", "s3://backups/a b",
		"s3://backups/x?acl=public", "s3://key:secret@backups/x", "s3://backups/x?endpoint=ftp://h",
		"s3://backups/x?endpoint=https://u:p@h", "file://host/x", "file:///x?y=1",
	} {
		if target, err := Open(url, testKeys); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %s, %v", url, target, err)
		}
	}
	if _, err := Open("s3://backups/x", func(string) string { return "" }); err == nil {
		t.Error("a bucket without credentials is opened")
	}
}

func TestBucketErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	f, target := newFakeS3(t)
	b := *target.storage.(*bucket)
	b.key.Secret = "another"
	if _, err := b.list(t.Context(), "a/"); err == nil || !strings.Contains(err.Error(), "403 SignatureDoesNotMatch") {
		t.Error(err)
	}
	b = *target.storage.(*bucket)
	b.base = strings.Replace(b.base, "backups", "nothing", 1)
	if err := b.put(context.Background(), "a", strings.NewReader(""), 0); err == nil ||
		!strings.Contains(err.Error(), "NoSuchBucket") {
		t.Error(err)
	}
	website := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(website.Close)
	b.base = website.URL + "/backups/"
	for name, err := range map[string]error{
		"list": second(b.list(t.Context(), "a/")),
		"put":  b.put(t.Context(), "a", strings.NewReader(""), 0),
	} {
		if err == nil || !strings.Contains(err.Error(), "404 Not Found") || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.setAway(true)
	if _, err := target.storage.get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
}

// TestDoctorWrites holds that doctor is not content with a key that may only read, and
// leaves nothing behind.
func TestDoctorWrites(t *testing.T) {
	t.Parallel()
	f, target := newFakeS3(t)
	if found := (Commands{target}).Doctor(t.Context()); !found.OK || len(f.objects) != 0 {
		t.Errorf("%+v, and there are %v", found, f.objects)
	}
	f.mu.Lock()
	f.frozen = true
	f.mu.Unlock()
	if found := (Commands{target}).Doctor(t.Context()); found.OK ||
		!strings.Contains(found.Message, "not written: the bucket answers 403 AccessDenied") {
		t.Errorf("%+v", found)
	}
}

func second[T any](_ T, err error) error { return err }
