package install

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnpack(t *testing.T) {
	many := make([]entry, maxEntries+1)
	for i := range many {
		many[i] = entry{name: "package/x/", kind: tar.TypeDir}
	}
	complete := driverArchive(t)
	cases := []struct {
		name   string
		packed []byte
		want   string // in the error
	}{
		{"parent folder", archive(t, entry{name: "package/../../evil", content: "x"}), "outside"},
		{"parent of a subfolder", archive(t, entry{name: "package/a/../../../evil", content: "x"}), "outside"},
		{"absolute", archive(t, entry{name: "/evil", content: "x"}), "outside"},
		{"outside the package", archive(t, entry{name: "other/evil", content: "x"}), "outside"},
		{"the package itself", archive(t, entry{name: "package", content: "x"}), "outside"},
		{"symbolic link", archive(t, entry{name: "package/link", kind: tar.TypeSymlink}), "neither"},
		{"hard link", archive(t, entry{name: "package/link", kind: tar.TypeLink}), "neither"},
		{"device", archive(t, entry{name: "package/dev", kind: tar.TypeChar}), "neither"},
		{"pipe", archive(t, entry{name: "package/pipe", kind: tar.TypeFifo}), "neither"},
		{
			"the same file twice",
			archive(t, entry{name: "package/a", content: "1"}, entry{name: "package/a", content: "2"}),
			"exists",
		},
		{"too many entries", archive(t, many...), "entries"},
		{"truncated", complete[:len(complete)/2], "EOF"},
		{"not an archive", []byte("hello"), "gzip"},
		{"empty", nil, "gzip"},
	}
	for _, tc := range cases {
		dir := t.TempDir()
		err := unpack(bytes.NewReader(tc.packed), filepath.Join(dir, "into"), acceptAll)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "evil")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a file was written outside the folder", tc.name)
		}
	}
}

func TestUnpackSelected(t *testing.T) {
	into := filepath.Join(t.TempDir(), "into")
	packed := archive(t, entry{name: "package/bin/node", content: "node", mode: 0o755}, entry{
		name:    "package/include/node.h",
		content: "h",
	})
	if err := unpack(bytes.NewReader(packed), into, func(name string) bool { return name == "bin/node" }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(into, "bin", "node")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(into, "include")); err == nil {
		t.Error("a file that was not selected was unpacked")
	}
}

func TestNPMSettings(t *testing.T) {
	dir := t.TempDir()
	cases := []struct {
		name, rc    string
		env         map[string]string
		base, token string
		fails       bool
	}{
		{name: "none", base: publicRegistry},
		{name: "file", rc: "registry = https://mirror.example/npm/\n", base: "https://mirror.example/npm"},
		{
			name: "quotes, comments, other keys",
			rc:   "; registry=x\n#registry=y\ncafile=z\nregistry=\"https://m.example\"\n",
			base: "https://m.example",
		},
		{
			name: "variable wins",
			rc:   "registry=https://a.example",
			env:  map[string]string{"npm_config_registry": "https://b.example/"},
			base: "https://b.example",
		},
		{
			name: "upper case",
			env:  map[string]string{"NPM_CONFIG_REGISTRY": "https://c.example"},
			base: "https://c.example",
		},
		{
			name:  "token for the same place only",
			rc:    "registry=https://a.example/x\n//a.example/x/:_authToken=${T}\n//b.example/:_authToken=no\n",
			env:   map[string]string{"T": "yes"},
			base:  "https://a.example/x",
			token: "yes",
		},
		{name: "user and password in it", rc: "registry=https://u:p@a.example", fails: true},
		{name: "no address", rc: "registry=mirror", fails: true},
	}
	for _, tc := range cases {
		path := filepath.Join(dir, "npmrc")
		if err := os.WriteFile(path, []byte(tc.rc), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &finder{Options: Options{on: &machine{}, Getenv: func(name string) string {
			if name == "npm_config_userconfig" {
				return path
			}
			return tc.env[name]
		}}}
		base, token, err := f.registry()
		if base != tc.base || token != tc.token || (err != nil) != tc.fails {
			t.Errorf("%s: %q %q %v", tc.name, base, token, err)
		}
		if err != nil && strings.Contains(err.Error(), "p@") {
			t.Errorf("%s: the password appears in %q", tc.name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(driverArchive(f))
	f.Add(archive(f, entry{name: "package/../../evil", content: "x"}, entry{name: "package/l", kind: tar.TypeSymlink}))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, packed []byte) {
		dir := t.TempDir()
		_ = unpack(bytes.NewReader(packed), filepath.Join(dir, "into"), acceptAll)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 1 {
			t.Fatalf("outside the folder: %v, %v", entries, err)
		}
	})
}

func FuzzNPMConf(f *testing.F) {
	f.Add("registry=https://a.example\n//a.example/:_authToken=${T}", "x")
	f.Add("a=${", "")
	f.Fuzz(func(t *testing.T, text, value string) {
		conf := npmConf{}
		conf.parse(text, func(string) string { return value })
		if !strings.Contains(text, "=") && len(conf) > 0 {
			t.Fatalf("%v parsed from %q", conf, text)
		}
	})
}
