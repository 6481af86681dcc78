package models

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent/egress"
	"satchel/vector/encoder/pretrained/sample"
)

// withModel returns a library with one model.
func withModel(t *testing.T, variant, name string) *Library {
	t.Helper()
	l := New(t.TempDir())
	if _, err := l.Add(t.Context(), sample.Of(t, variant).Build(t, "F32"), name); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAddedModelsAreListedSharedAndRemoved(t *testing.T) {
	l := withModel(t, "dense", "tiny")
	if _, err := l.Add(t.Context(), sample.Of(t, "pair").Build(t, "F32"), "judge"); err != nil {
		t.Fatal(err)
	}
	list, err := l.List()
	if err != nil ||
		len(list) != 2 ||
		list[0].Name != "judge" ||
		list[1].Dims != 16 ||
		list[1].Tokens != 40 ||
		len(list[1].Files) != 8 {
		t.Fatalf("got %+v %v", list, err)
	}
	if name := l.Reranker(); name != "judge" {
		t.Errorf("reranker %q", name)
	}
	if v := list[1].Vectors(); !strings.HasPrefix(v, "tiny@file/") || len(v) != len("tiny@file/")+16 {
		t.Errorf("vectors %q", v)
	}
	a, err := l.Open("tiny")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := l.Open("tiny"); err != nil || a != b {
		t.Errorf("opened twice: %v", err)
	}
	if err := l.Remove("tiny"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Embed(t.Context(), "w5"); err != nil {
		t.Errorf("a model that was removed in use: %v", err)
	}
	for _, err := range []error{
		l.Remove("tiny"),
		second(l.Open("tiny")),
		second(l.Info("../tiny")),
		second(l.Check(t.Context(), "tiny")),
	} {
		if !IsNotInstalled(err) {
			t.Errorf("after removal: %v", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(l.path, ".*")); len(left) != 0 {
		t.Errorf("files remain: %v", left)
	}
}

func second[T any](_ T, err error) error { return err }

func TestModelsAreFreedWhenIdle(t *testing.T) {
	l := withModel(t, "mean", "tiny")
	l.idle = time.Hour
	m, err := l.Open("tiny")
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan struct{})
	runtime.AddCleanup(m, func(c chan struct{}) { close(c) }, freed)
	l.mu.Lock()
	o := l.open["tiny"]
	l.mu.Unlock()
	o.unused.Stop()
	l.forget("tiny", o)
	m, o = nil, nil
	for range 10 {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("an idle model is still in memory")
}

func TestInvalidModelsAreRejected(t *testing.T) {
	good := sample.Of(t, "mean").Build(t, "F32")
	bad := sample.Of(t, "mean").Build(t, "F32")
	if err := os.Truncate(filepath.Join(bad, "model.safetensors"), 1000); err != nil {
		t.Fatal(err)
	}
	notModel := filepath.Join(t.TempDir(), "wrong.gguf")
	if err := os.WriteFile(notModel, []byte("<html>not found</html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := withModel(t, "mean", "taken")
	for _, c := range []struct{ folder, name, want string }{
		{good, "taken", "already exists"},
		{good, "a/b", "is not a valid name"},
		{good, "..", "is not a valid name"},
		{good, strings.Repeat("x", 65), "is not a valid name"},
		{bad, "bad", "model.safetensors: the file is cut off"},
		{t.TempDir(), "empty", "config.json is missing"},
		{filepath.Join(good, "nowhere"), "nowhere", "no such file"},
		{filepath.Join(good, "config.json"), "file", "neither a folder nor a .gguf file"},
		{notModel, "", "model.gguf: it is not a GGUF file"},
	} {
		if _, err := l.Add(t.Context(), c.folder, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
	if list, _ := os.ReadDir(l.path); len(list) != 1 {
		t.Errorf("files remain: %v", list)
	}
}

// A GGUF file is a complete model: it is named after the file, and its vectors are
// those of the same model in a folder.
func TestGGUFIsAdded(t *testing.T) {
	v := sample.Of(t, "mean")
	l := New(t.TempDir())
	if _, err := l.Add(t.Context(), v.Build(t, "F32"), "folder"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny-v1.5.Q8_0.gguf")
	if err := os.WriteFile(path, v.GGUF("F32").Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := l.Add(t.Context(), path, "")
	if err != nil ||
		info.Name != "tiny-v1.5.Q8_0" ||
		info.Dims != 32 ||
		len(info.Files) != 1 ||
		info.Files[0].Name != "model.gguf" ||
		info.Prompts != nil {
		t.Fatalf("got %+v %v", info, err)
	}
	if r, err := l.Check(t.Context(), info.Name); err != nil || r.Info.ID != info.ID {
		t.Errorf("got %+v %v", r, err)
	}
	var vectors [2][]float32
	for i, name := range []string{"folder", info.Name} {
		m, err := l.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if vectors[i], err = m.Embed(t.Context(), "w5 w6 w90"); err != nil {
			t.Fatal(err)
		}
	}
	for i, x := range vectors[0] {
		if d := x - vectors[1][i]; d > 1e-6 || d < -1e-6 {
			t.Fatalf("number %d is %v and %v", i, x, vectors[1][i])
		}
	}
}

func TestCheckFindsChangedFiles(t *testing.T) {
	l := withModel(t, "mean", "tiny")
	if r, err := l.Check(t.Context(), "tiny"); err != nil || r.Seconds <= 0 || r.Published != nil {
		t.Fatalf("got %+v %v", r, err)
	}
	path := filepath.Join(l.path, "tiny", "model.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Check(t.Context(), "tiny"); err == nil ||
		!strings.Contains(err.Error(), "model.safetensors has changed") {
		t.Errorf("got %v", err)
	}
}

// server serves the folder of a model like the hub. cut ends the first responses for
// the weights after some bytes.
type server struct {
	*httptest.Server
	folder string
	cut    atomic.Int64
	ranges atomic.Int64 // requests for the rest of a file
	whole  bool         // ignores ranges
}

func serve(t *testing.T, folder string) *server {
	s := &server{folder: folder}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/some/model/resolve/main/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Header.Get("Range") != "" {
			s.ranges.Add(1)
		}
		if s.whole {
			r.Header.Del("Range")
		}
		if strings.HasSuffix(name, ".safetensors") && s.cut.Add(-1) >= 0 {
			w = &cutting{w}
		}
		http.ServeFile(w, r, filepath.Join(folder, name))
	}))
	t.Cleanup(s.Close)
	return s
}

// cutting is a ResponseWriter that closes the connection after some bytes of the body.
type cutting struct{ http.ResponseWriter }

func (c *cutting) Write(p []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(p[:min(1000, len(p))])
	c.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func (s *server) install(t *testing.T) Install {
	t.Helper()
	_, sum, err := hashFile(filepath.Join(s.folder, weights))
	if err != nil {
		t.Fatal(err)
	}
	return Install{
		Model:  "some/model",
		Name:   "tiny",
		SHA256: sum,
		Mirror: s.URL,
		Client: egress.New(egress.Policy{AllowPrivate: true, MaxResponse: -1}),
	}
}

func TestInstallContinuesDownloads(t *testing.T) {
	for _, variant := range []string{"dense", "pair"} {
		for _, whole := range []bool{false, true} {
			s := serve(t, sample.Of(t, variant).Build(t, "F32"))
			s.whole = whole
			s.cut.Store(2)
			l := New(t.TempDir())
			info, err := l.Install(t.Context(), s.install(t))
			if err != nil || info.Name != "tiny" || info.Source != "https://huggingface.co/some/model/tree/main" {
				t.Fatalf("%s: %+v %v", variant, info, err)
			}
			if s.ranges.Load() == 0 {
				t.Error("no download was continued")
			}
			if _, err := l.Open("tiny"); err != nil {
				t.Error(err)
			}
			if list, _ := os.ReadDir(l.path); len(list) != 1 {
				t.Errorf("files remain: %v", list)
			}
		}
	}
}

func TestBrokenInstallContinuesLater(t *testing.T) {
	s := serve(t, sample.Of(t, "mean").Build(t, "F32"))
	s.cut.Store(1000)
	l := New(t.TempDir())
	if _, err := l.Install(t.Context(), s.install(t)); err == nil ||
		!strings.Contains(err.Error(), "download of model.safetensors") {
		t.Fatalf("got %v", err)
	}
	if list, _ := l.List(); len(list) != 0 {
		t.Errorf("an incomplete model is listed: %v", list)
	}
	s.cut.Store(0)
	before := s.ranges.Load()
	if _, err := l.Install(t.Context(), s.install(t)); err != nil || s.ranges.Load() != before+1 {
		t.Errorf("%v, %d ranges", err, s.ranges.Load()-before)
	}
}

func TestWrongHashAndFullDisk(t *testing.T) {
	s := serve(t, sample.Of(t, "mean").Build(t, "F32"))
	l := New(t.TempDir())
	o := s.install(t)
	sum := sha256.Sum256(nil)
	o.SHA256 = hex.EncodeToString(sum[:])
	if _, err := l.Install(t.Context(), o); err == nil || !strings.Contains(err.Error(), "it was deleted") {
		t.Errorf("wrong hash: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(l.path, ".tiny*", "model.safetensors*")); len(found) != 0 {
		t.Errorf("files remain: %v", found)
	}
	if runtime.GOOS != "linux" {
		t.Skip("no /dev/full")
	}
	o = s.install(t)
	folder := filepath.Join(l.path, ".tiny."+o.SHA256[:12]+".download")
	if err := errors.Join(
		os.MkdirAll(folder, 0o700),
		os.Symlink("/dev/full", filepath.Join(folder, "model.safetensors.part")),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Install(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("full disk: %v", err)
	}
}

func TestUninstallableModelsAreRejected(t *testing.T) {
	l := withModel(t, "mean", "all-MiniLM-L6-v2")
	sum := strings.Repeat("0", 64)
	for _, c := range []struct {
		o    Install
		want string
	}{
		{Install{Model: "unknown"}, "is not a known model"},
		{Install{Model: "some/model"}, "with --sha256"},
		{Install{Model: "some/model", SHA256: "ABC"}, "64 hexadecimal digits"},
		{Install{Model: "some/model", SHA256: sum, Revision: "../x"}, "--revision"},
		{Install{Model: "../model", SHA256: sum}, "is not a known model"},
		{Install{Model: "all-MiniLM-L6-v2"}, "already exists"},
		{Install{Model: "bge-small-en-v1.5", SHA256: sum}, "is pinned to another"},
		{Install{Model: "some/model", SHA256: sum, Name: "a b"}, "is not a valid name"},
	} {
		if _, err := l.Install(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.o, err, c.want)
		}
	}
}

func TestFilesThatTheServerDoesNotHave(t *testing.T) {
	s := serve(t, t.TempDir())
	l := New(t.TempDir())
	o := Install{
		Model:  "some/model",
		SHA256: strings.Repeat("0", 64),
		Mirror: s.URL,
		Client: egress.New(egress.Policy{AllowPrivate: true}),
	}
	if _, err := l.Install(t.Context(), o); !errors.Is(err, errNoFile) ||
		!strings.Contains(err.Error(), "config.json") {
		t.Errorf("got %v", err)
	}
	o.Client = egress.New(egress.Policy{})
	if _, err := l.Install(t.Context(), o); err == nil || errors.Is(err, errNoFile) {
		t.Errorf("a private address was reached: %v", err)
	}
}

func TestPins(t *testing.T) {
	for name, k := range knownModels {
		if CheckName(name) != nil || !isRepository(k.repository) || len(k.revision) != 40 || k.sums[weights] == "" {
			t.Errorf("%s: %+v", name, k)
		}
		for file, sum := range k.sums {
			if !hashes.MatchString(sum) {
				t.Errorf("%s %s: %q is not a hash", name, file, sum)
			}
		}
	}
	if !slices.IsSorted(Known()) {
		t.Error("not sorted")
	}
}

func TestCommands(t *testing.T) {
	l := New(t.TempDir())
	c := Commands{Library: l}
	var out strings.Builder
	folder := sample.Of(t, "mean").Build(t, "F32")
	for _, run := range []func() error{
		func() error { return c.List(&out) },
		func() error { return c.Add(t.Context(), folder, "tiny", &out) },
		func() error { return c.List(&out) },
		func() error { return c.Remove("tiny", &out) },
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"No models are installed",
		"tiny is installed: vectors of 32 numbers",
		`embedding_model to "tiny"`,
		"embedder",
		"tiny is removed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := c.Check(t.Context(), "tiny", io.Discard); err == nil ||
		!strings.HasPrefix(err.Error(), "the model tiny is not installed") {
		t.Errorf("got %v", err)
	}
}
