// Command bundle builds the web console. The TypeScript and CSS in src become
// the files in dist/app, and the npm packages that packages/package-lock.json
// pins become those in dist/lib, both compressed with gzip; the binary embeds dist
// and nothing else.
//
//	go run ./httpapi/console/bundle            build dist/app
//	go run ./httpapi/console/bundle -watch     build it again after each change
//	go run ./httpapi/console/bundle -check     report files that differ from what src builds
//	go run ./httpapi/console/bundle -packages  install the packages with npm and build dist/lib
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	watch := flag.Bool("watch", false, "build again after each change")
	check := flag.Bool("check", false, "report files that differ from what src builds")
	packages := flag.Bool("packages", false, "install the npm packages and build dist/lib")
	flag.Parse()
	root, err := console()
	if err == nil {
		build := writeApp
		switch {
		case *packages:
			build = buildPackages
		case *check:
			build = checkApp
		case *watch:
			build = watchApp
		}
		err = build(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// console returns the folder of the console in the module of the working
// directory.
func console() (string, error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return filepath.Join(strings.TrimSpace(string(module)), "httpapi", "console"), err
}

// writeApp builds dist/app and removes what is no longer built.
func writeApp(root string) error {
	built, err := buildApp(root)
	if err != nil {
		return err
	}
	files, err := pack(built)
	if err != nil {
		return err
	}
	return replaceFolder(filepath.Join(root, "dist", "app"), files)
}

// checkApp returns an error that names the first file of dist/app whose content differs
// from the result of building src. It compares what is compressed, since releases of Go
// compress differently.
func checkApp(root string) error {
	files, err := buildApp(root)
	if err != nil {
		return err
	}
	dist := filepath.Join(root, "dist", "app")
	for name, want := range files {
		if got, err := unpack(filepath.Join(dist, name+packed)); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("dist/app/%s is not what src builds: run go run ./httpapi/console/bundle", name)
		}
	}
	entries, err := os.ReadDir(dist)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), packed)
		if _, known := files[name]; !ok || !known {
			return fmt.Errorf("dist/app/%s has no source: run go run ./httpapi/console/bundle", e.Name())
		}
	}
	return err
}

// watchApp rebuilds dist/app whenever a file under src is newer than the last build.
func watchApp(root string) error {
	var built time.Time
	for {
		newest, err := newestChange(filepath.Join(root, "src"))
		if err != nil {
			return err
		}
		if newest.After(built) {
			built = newest
			start := time.Now()
			if err := writeApp(root); err != nil {
				fmt.Fprintln(os.Stderr, err)
			} else {
				fmt.Println("built in", time.Since(start).Round(time.Millisecond))
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func newestChange(dir string) (newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return err
	})
	return newest, err
}

// replaceFolder writes files to dir, and removes all others there.
func replaceFolder(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return err
}

// buildPackages installs the pinned packages in a temporary folder, with npm checking the
// SHA-512 of each, and builds dist/lib from them.
func buildPackages(root string) error {
	dir, err := os.MkdirTemp("", "console-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	entries, err := filepath.Glob(filepath.Join(root, "packages", "*"))
	if err != nil {
		return err
	}
	for _, file := range entries {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund")
	install.Dir, install.Stdout, install.Stderr = dir, os.Stdout, os.Stderr
	if err := install.Run(); err != nil {
		return fmt.Errorf("npm ci: %w", err)
	}
	built, err := buildLib(dir)
	if err != nil {
		return err
	}
	files, err := pack(built)
	if err != nil {
		return err
	}
	licences, err := readLicences(filepath.Join(dir, "node_modules"))
	if err != nil {
		return err
	}
	files["LICENSES.txt"] = licences
	return replaceFolder(filepath.Join(root, "dist", "lib"), files)
}

// packed is the extension of compressed files.
const packed = ".gz"

// pack compresses files; the server sends them compressed.
func pack(files map[string][]byte) (map[string][]byte, error) {
	compressed := map[string][]byte{}
	for name, content := range files {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		compressed[name+packed] = out.Bytes()
	}
	return compressed, nil
}

// unpack returns the content of a compressed file.
func unpack(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// readLicences returns the licence texts of the packages that may be part of
// dist/lib, each under the package's name.
func readLicences(modules string) ([]byte, error) {
	found, err := filepath.Glob(filepath.Join(modules, "*", "LICENSE*"))
	if err != nil {
		return nil, err
	}
	scoped, err := filepath.Glob(filepath.Join(modules, "@*", "*", "LICENSE*"))
	if err != nil {
		return nil, err
	}
	found = append(found, scoped...)
	slices.Sort(found)
	var out bytes.Buffer
	for _, file := range found {
		name, _ := filepath.Rel(modules, filepath.Dir(file))
		if name == "typescript" || filepath.Dir(name) == "@typescript" || filepath.Dir(name) == "@types" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "== %s ==\n\n%s\n\n", filepath.ToSlash(name), bytes.TrimSpace(text))
	}
	return out.Bytes(), nil
}
