package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// archived returns an archive as a release has it, with a program that prints
// its version.
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

// TestInstallScript installs from a page of releases, and nothing whose checksum
// is another.
func TestInstallScript(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("install.sh is for Linux and macOS")
	}
	archive, name := archived(t), fmt.Sprintf("satchel_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	for _, tc := range []struct{ name, sums, want string }{
		{"sound", fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), name), "Installed 1.2.3 as"},
		{"another", fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte("x")), name), "nothing was installed"},
		{"not named", "", "checksums.txt says nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := http.NewServeMux()
			files.HandleFunc("/releases/latest/download/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
			files.HandleFunc("/releases/latest/download/checksums.txt", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.sums) })
			page := httptest.NewServer(files)
			defer page.Close()
			to := filepath.Join(t.TempDir(), "bin")
			script := exec.Command("sh", "deploy/install.sh", to)
			script.Env = append(os.Environ(), "SATCHEL_RELEASES="+page.URL+"/releases")
			out, err := script.CombinedOutput()
			_, missing := os.Stat(filepath.Join(to, "satchel"))
			if ok := tc.name == "sound"; !strings.Contains(string(out), tc.want) || (err == nil) != ok || (missing == nil) != ok {
				t.Errorf("%v, %v\n%s", err, missing, out)
			}
		})
	}
}
