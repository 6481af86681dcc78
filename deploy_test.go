package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"satchel/agent/testenv"
)

// archived returns an archive as in a release, with a program that prints its version.
func archived(t *testing.T) []byte {
	t.Helper()
	const program = "#!/bin/sh\necho 1.2.3\n"
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	if err := tape.WriteHeader(&tar.Header{Name: "satchel", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := tape.Write([]byte(program)); err != nil {
		t.Fatal(err)
	}
	if err := tape.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shells returns the shells of this machine that install.sh is tested with.
func shells() (found []string) {
	for _, name := range []string{"sh", "dash", "bash", "zsh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// TestInstallScript installs from a page of releases, and installs nothing with a wrong
// checksum or that was cut off: then the installed program stays.
func TestInstallScript(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("install.sh is for Linux and macOS")
	}
	testenv.Program(t, "curl")
	archive, name := archived(t), fmt.Sprintf("satchel_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), name)
	whole := func(w http.ResponseWriter, content string) { _, _ = io.WriteString(w, content) }
	half := func(w http.ResponseWriter, content string) { // then the connection ends
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = io.WriteString(w, content[:len(content)/2])
	}
	missing := func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) }
	for _, shell := range shells() {
		for _, tc := range []struct {
			name, sums, want string
			archive, list    func(http.ResponseWriter, string)
		}{
			{"sound", sums, "Installed 1.2.3 as", whole, whole},
			{
				"another",
				fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("x")), name),
				"nothing was installed",
				whole,
				whole,
			},
			{"not named", "\n", "checksums.txt says nothing", whole, whole},
			{"cut off", sums, "cannot be downloaded", half, whole},
			{"no archive", sums, "cannot be downloaded", missing, whole},
			{"no checksums", sums, "checksums.txt cannot be downloaded", whole, missing},
			{"half the checksums", sums, "cannot be downloaded", whole, half},
		} {
			t.Run(filepath.Base(shell)+", "+tc.name, func(t *testing.T) {
				t.Parallel()
				files := http.NewServeMux()
				files.HandleFunc("/releases/latest/download/"+name, func(w http.ResponseWriter, _ *http.Request) {
					tc.archive(w, string(archive))
				})
				files.HandleFunc(
					"/releases/latest/download/checksums.txt",
					func(w http.ResponseWriter, _ *http.Request) { tc.list(w, tc.sums) },
				)
				page := httptest.NewServer(files)
				defer page.Close()
				to := t.TempDir()
				installed := filepath.Join(to, "satchel")
				if err := os.WriteFile(installed, []byte("older"), 0o600); err != nil {
					t.Fatal(err)
				}
				script := exec.Command(shell, "deploy/install.sh", to)
				script.Env = append(os.Environ(), "SATCHEL_RELEASES="+page.URL+"/releases", "TMPDIR="+t.TempDir())
				out, err := script.CombinedOutput()
				ok := tc.name == "sound"
				if !strings.Contains(string(out), tc.want) || (err == nil) != ok {
					t.Errorf("%v\n%s", err, out)
				}
				if now, err := os.ReadFile(installed); err != nil || (string(now) == "older") == ok {
					t.Errorf("the program is %q, %v", now, err)
				}
				if left, _ := os.ReadDir(to); len(left) != 1 {
					t.Errorf("%v are left", left)
				}
			})
		}
	}
}

// TestInstallScriptRefusesEarly holds that what cannot work is refused before anything
// is downloaded, and that a version may be given with or without its v.
func TestInstallScriptRefusesEarly(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("install.sh is for Linux and macOS")
	}
	testenv.Program(t, "curl")
	var requests []string
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer page.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(to, version string) (string, error) {
		script := exec.CommandContext(t.Context(), "sh", "deploy/install.sh", to)
		script.Env = append(os.Environ(), "SATCHEL_RELEASES="+page.URL+"/releases", "SATCHEL_VERSION="+version)
		out, err := script.CombinedOutput()
		return string(out), err
	}
	if out, err := run(filepath.Join(file, "bin"), "v1.2.3"); err == nil ||
		!strings.Contains(out, "cannot be written to") ||
		len(requests) != 0 {
		t.Errorf("%v, %v\n%s", err, requests, out)
	}
	for _, version := range []string{"v1.2.3", "1.2.3"} {
		requests = nil
		if out, err := run(t.TempDir(), version); err == nil ||
			len(requests) == 0 ||
			!strings.HasPrefix(requests[0], "/releases/download/v1.2.3/satchel_") {
			t.Errorf("%s: %v, %v\n%s", version, err, requests, out)
		}
	}
}

// TestImageKnowsItsVersion holds that a build of the image gets the version without
// the tag's v, the commit, its date and the page of releases, as archives do.
func TestImageKnowsItsVersion(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(dockerfile), "\nRUN commit=")
	if !found {
		t.Fatal("the Dockerfile has no step that builds")
	}
	script, _, _ = strings.Cut("commit="+script, "\n\n")
	built := exec.CommandContext(t.Context(), "sh", "-euc", "go() { echo \"$*\"; }\ninstall() { :; }\n"+script)
	built.Env = append(
		os.Environ(),
		"TARGETOS=linux",
		"TARGETARCH=arm64",
		"VERSION=v1.2.3",
		"COMMIT=0123456789abcdef",
		"DATE=2026-11-26T10:00:00Z",
		"RELEASES=https://example.com/releases",
	)
	out, err := built.CombinedOutput()
	const want = "-X main.version=1.2.3 -X main.commit=01234567 -X main.date=2026-11-26T10:00:00Z -X " +
		"main.releases=https://example.com/releases"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("builds by\n%swant %s (%v)", out, want, err)
	}
}
