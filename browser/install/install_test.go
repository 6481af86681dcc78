package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/agent/testenv"
)

// entry is an entry of an archive.
type entry struct {
	name, content string
	kind          byte
	mode          int64
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		kind := e.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		size := int64(len(e.content))
		if kind != tar.TypeReg {
			size = 0
		}
		if err := w.WriteHeader(&tar.Header{
			Name:     e.name,
			Typeflag: kind,
			Size:     size,
			Mode:     e.mode,
			Linkname: "/etc/passwd",
		}); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// program writes an executable shell script.
func program(t testing.TB, path, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// testMachine is a machine whose PATH and usual paths are temporary folders and whose
// registry is a local server.
type testMachine struct {
	options  Options
	path     string // the folder that is PATH
	requests atomic.Int64
	output   []string
}

func newTestMachine(t *testing.T, served []byte) *testMachine {
	t.Helper()
	dir := t.TempDir()
	b := &testMachine{path: filepath.Join(dir, "bin")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		if r.URL.Path != "/npm/playwright-core/-/playwright-core-"+DriverVersion+".tgz" ||
			r.Header.Get("Authorization") != "Bearer sesame" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	t.Cleanup(server.Close)
	home := filepath.Join(dir, "home")
	rc := "registry=" + server.URL + "/npm/\n" + strings.TrimPrefix(server.URL, "http:") + "/npm/:_authToken=${TOKEN}\n"
	if err := errors.Join(
		os.MkdirAll(home, 0o755),
		os.WriteFile(filepath.Join(home, ".npmrc"), []byte(rc), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	hash := sha512.Sum512(served)
	b.options = Options{
		Driver: filepath.Join(dir, "driver"),
		Getenv: func(name string) string { return map[string]string{"HOME": home, "TOKEN": "sesame"}[name] },
		Out:    func(line string) { b.output = append(b.output, line) },
		on: &machine{
			usualPaths: []string{filepath.Join(dir, "usual", "chromium")},
			lookPath: func(name string) (string, error) {
				path := filepath.Join(b.path, name)
				if _, err := os.Stat(path); err != nil {
					return "", exec.ErrNotFound
				}
				return path, nil
			},
		},
		pins: map[string]pinnedPackage{
			"playwright-core": {"playwright-core", DriverVersion, base64.StdEncoding.EncodeToString(hash[:])},
		},
	}
	return b
}

func driverArchive(t testing.TB) []byte {
	return archive(
		t,
		entry{name: "package/package.json", content: `{"name":"playwright-core","version":"` + DriverVersion + `"}`},
		entry{name: "package/cli.js", content: "// cli", mode: 0o755},
	)
}

func wantMissing(t *testing.T, err error, parts ...string) {
	t.Helper()
	var missing *Missing
	if !errors.As(err, &missing) {
		t.Fatalf("%v, want a *Missing", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %q", err, part)
		}
	}
}

func TestReady(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	program(t, filepath.Join(b.path, "node"), "echo v18.0.0")
	program(t, filepath.Join(b.path, "chromium"), "echo Chromium 100.0")
	if _, err := Find(t.Context(), b.options); err == nil {
		t.Fatal("found a driver that does not exist")
	}
	p, err := Ready(t.Context(), b.options)
	if err != nil {
		t.Fatal(err)
	}
	if p.Chromium != filepath.Join(b.path, "chromium") ||
		p.ChromiumVersion != "Chromium 100.0" ||
		p.Driver != b.options.Driver {
		t.Errorf("got %+v", p)
	}
	if info, err := os.Stat(filepath.Join(p.Driver, "package", "cli.js")); err != nil ||
		info.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("cli.js: %v %v", info, err)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Driver), ".d*")); len(files) > 0 {
		t.Errorf("temporary files remain: %v", files)
	}
	if again, err := Ready(t.Context(), b.options); err != nil || again != p || b.requests.Load() != 1 {
		t.Errorf("second call: %+v, %v after %d downloads", again, err, b.requests.Load())
	}
}

// Concurrent calls share one download.
func TestReadyAtOnce(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	b.options.Out = nil
	program(t, filepath.Join(b.path, "node"), "echo v20.1.2")
	program(t, filepath.Join(b.path, "chromium"), "echo Chromium 100.0")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Ready(t.Context(), b.options); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := b.requests.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock: %v", err)
	}
	unlock()
	if unlock, err = lock(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// A file with another hash is rejected and removed.
func TestForgedPackage(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	b.options.pins = pins
	program(t, filepath.Join(b.path, "node"), "echo v20.1.2")
	_, err := Ready(t.Context(), b.options)
	wantMissing(t, err, "SHA-512", "the browser driver")
	files, err := os.ReadDir(filepath.Dir(b.options.Driver))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		if name := entry.Name(); name != "driver.lock" && name != "home" && name != "bin" {
			t.Errorf("%s remains", name)
		}
	}
}

func TestRegistryFails(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	program(t, filepath.Join(b.path, "node"), "echo v20.1.2")
	getenv := b.options.Getenv
	b.options.Getenv = func(name string) string {
		if name == "TOKEN" {
			return "wrong"
		}
		return getenv(name)
	}
	_, err := Ready(t.Context(), b.options)
	wantMissing(t, err, "404")
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the token appears in %q", err)
	}
}

// If node was removed or is too old, only node must be replaced.
func TestNodeChanges(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	node := filepath.Join(b.path, "node")
	program(t, node, "echo v20.1.2")
	program(t, filepath.Join(b.path, "chromium"), "echo Chromium 100.0")
	if _, err := Ready(t.Context(), b.options); err != nil {
		t.Fatal(err)
	}
	program(t, node, "echo v16.20.0")
	_, err := Ready(t.Context(), b.options)
	wantMissing(t, err, "v16.20.0", "18")
	if err := os.Remove(node); err != nil {
		t.Fatal(err)
	}
	_, err = Ready(t.Context(), b.options)
	wantMissing(t, err, "no node on PATH")
	program(t, filepath.Join(b.path, "nodejs"), "echo v22.0.0")
	if _, err := Ready(t.Context(), b.options); err != nil {
		t.Fatal(err)
	}
	if n := b.requests.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

// Other files in the folder that the settings name are not removed.
func TestForeignFolder(t *testing.T) {
	b := newTestMachine(t, driverArchive(t))
	program(t, filepath.Join(b.path, "node"), "echo v20.1.2")
	keep := filepath.Join(b.options.Driver, "package", "package.json")
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(keep), 0o755),
		os.WriteFile(keep, []byte(`{"name":"thesis","version":"1"}`), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	_, err := Ready(t.Context(), b.options)
	wantMissing(t, err, "thesis", "--browser-driver")
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
	for _, f := range b.options.Doctor(t.Context()) {
		if f.OK {
			t.Errorf("doctor accepts %+v", f)
		}
	}
}

// With a Chromium on another machine, only the driver is needed.
func TestRemote(t *testing.T) {
	b := withDriver(t, "echo v20.1.2")
	if _, err := Find(t.Context(), b.options); err == nil {
		t.Error("found a Chromium on a machine without one")
	}
	b.options.Remote = true
	if p, err := Find(t.Context(), b.options); err != nil || p.Chromium != "" || p.Driver == "" {
		t.Errorf("got %+v, %v", p, err)
	}
	if f := b.options.Doctor(t.Context()); len(f) != 1 ||
		!f[0].OK ||
		!strings.Contains(f[0].Message, "on another machine") {
		t.Errorf("got %+v", f)
	}
}

// TestDoctorStartsChromium holds that doctor is not content with a browser that reports
// its version and does not start, and that it says so if the sandbox is denied.
func TestDoctorStartsChromium(t *testing.T) {
	for _, tc := range []struct{ start, want string }{
		{"exit 0", "Chromium 104.0 at"},
		{`echo "cannot open display" >&2; exit 1`, "does not start: exit status 1: cannot open display"},
		{
			`printf '[ERROR:crashpad] mkdir\n[FATAL:zygote_host_impl_linux.cc(132)] No usable sandbox!\n` +
				`[ERROR:crashpad] open\n' >&2; exit 5`,
			"denies Chromium's sandbox",
		},
	} {
		b := withDriver(t, "echo v20.1.2")
		program(
			t,
			filepath.Join(b.path, "chromium"),
			`[ "$1" = --version ] && { echo Chromium 104.0; exit; }; `+tc.start,
		)
		f := b.options.Doctor(t.Context())
		if len(f) != 1 || f[0].OK != (tc.start == "exit 0") || !strings.Contains(f[0].Message, tc.want) {
			t.Errorf("%s: %+v", tc.start, f)
		}
	}
}

// withDriver is a bench whose driver is there already.
func withDriver(t *testing.T, node string) *testMachine {
	b := newTestMachine(t, nil)
	program(t, filepath.Join(b.options.Driver, "node"), node)
	manifest := filepath.Join(b.options.Driver, "package", "package.json")
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(manifest), 0o755),
		os.WriteFile(manifest, []byte(`{"name":"playwright-core","version":"`+DriverVersion+`"}`), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return b
}

const failingNode = `[ "$1" = --version ] && { echo v20.1.2; exit; }; echo "Error: no way out" >&2; ` +
	`echo "    at somewhere" >&2; exit 3`

func TestChromium(t *testing.T) {
	t.Run("missing Chromium in the settings", func(t *testing.T) {
		b := withDriver(t, failingNode)
		program(t, filepath.Join(b.path, "chromium"), "echo Chromium 100.0")
		b.options.Chromium = filepath.Join(b.path, "nothing")
		_, err := Ready(t.Context(), b.options)
		wantMissing(t, err, "the setting chromium names", "nothing")
	})
	t.Run("the first one that runs", func(t *testing.T) {
		b := withDriver(t, failingNode)
		program(t, filepath.Join(b.path, "chromium"), "echo 'libnss3.so: cannot open' >&2; exit 127")
		program(t, b.options.on.usualPaths[0], "echo Chromium 101.0")
		if p, err := Find(t.Context(), b.options); err != nil || p.Chromium != b.options.on.usualPaths[0] {
			t.Errorf("got %+v, %v", p, err)
		}
	})
	t.Run("by Playwright", func(t *testing.T) {
		b := withDriver(t, `[ "$1" = --version ] && { echo v20.1.2; exit; }
at="$PLAYWRIGHT_BROWSERS_PATH/chromium-1/chrome-linux"; mkdir -p "$at"; printf '#!/bin/sh\necho Chromium 102.0\n' >"$at/chrome"; chmod +x "$at/chrome"`)
		if p, err := Ready(t.Context(), b.options); err != nil || p.ChromiumVersion != "Chromium 102.0" {
			t.Errorf("got %+v, %v", p, err)
		}
	})
	for _, name := range []string{"apt-get", "dnf", "apk"} {
		t.Run("by "+name, func(t *testing.T) {
			b := withDriver(t, failingNode)
			b.options.on.root = true
			program(t, filepath.Join(b.path, name), fmt.Sprintf(`case "$*" in *update) exit 0;; *chromium) [ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9
printf '#!/bin/sh\necho Chromium 103.0\n' >%[1]s/chromium; chmod +x %[1]s/chromium;; esac`, b.path))
			if p, err := Ready(t.Context(), b.options); err != nil || p.ChromiumVersion != "Chromium 103.0" {
				t.Errorf("%+v, %v\n%s", p, err, strings.Join(b.output, "\n"))
			}
		})
	}
	t.Run("every way fails", func(t *testing.T) {
		b := withDriver(t, failingNode)
		b.options.on.root = true
		program(t, filepath.Join(b.path, "apt-get"), `echo "E: Unable to locate package chromium" >&2; exit 100`)
		_, err := Ready(t.Context(), b.options)
		wantMissing(t, err, "no way out", "Unable to locate package", "--chromium")
	})
	t.Run("not root", func(t *testing.T) {
		b := withDriver(t, failingNode)
		program(t, filepath.Join(b.path, "apt-get"), "exit 0")
		_, err := Ready(t.Context(), b.options)
		wantMissing(t, err, "needs root", "run: sudo apt-get")
	})
}

// TestThisMachine finds or installs the browser of this machine, as sessions do.
func TestThisMachine(t *testing.T) {
	find := Find
	if testenv.All() {
		find = Ready
	}
	p, err := find(t.Context(), Options{Getenv: os.Getenv, Out: func(line string) { t.Log(line) }})
	testenv.Need(t, "Chromium and its driver", err)
	out, err := exec.CommandContext(
		t.Context(),
		p.Node,
		filepath.Join(p.Driver, "package", "cli.js"),
		"--version",
	).Output()
	if err != nil || !strings.Contains(string(out), DriverVersion) {
		t.Errorf("the driver prints %q, %v", out, err)
	}
	findings := Options{Getenv: os.Getenv}.Doctor(t.Context())
	if len(findings) != 1 || !findings[0].OK || !strings.Contains(findings[0].Message, p.Chromium) {
		t.Errorf("doctor: %+v", findings)
	}
}
