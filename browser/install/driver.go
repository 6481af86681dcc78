package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// oldestNode is the first major version of Node.js that the driver runs on.
const oldestNode = 18

// checkDriver returns what is wrong with the driver, or "" if it works.
func (f *finder) checkDriver(ctx context.Context) string {
	if reason := f.checkPackage(); reason != "" {
		return reason
	}
	return checkNode(ctx, filepath.Join(f.driver, "node"))
}

// checkPackage returns what is wrong with Playwright's package, or "". The package is
// installed with a single rename, so it is never incomplete.
func (f *finder) checkPackage() string {
	raw, err := os.ReadFile(filepath.Join(f.driver, "package", "package.json"))
	if errors.Is(err, os.ErrNotExist) {
		return "there is none in " + f.driver
	}
	var of struct{ Name, Version string }
	if err == nil {
		err = json.Unmarshal(raw, &of)
	}
	switch {
	case err != nil:
		return f.driver + " cannot be read"
	case of.Name != "playwright-core" || of.Version != DriverVersion:
		return fmt.Sprintf(
			"%s holds %.40s %.40s, and only playwright-core %s fits",
			f.driver, of.Name, of.Version, DriverVersion,
		)
	}
	return ""
}

// checkNode returns what is wrong with a Node.js executable, or "" if it can be used.
func checkNode(ctx context.Context, path string) string {
	version, err := programVersion(ctx, path) // v22.14.0
	if err != nil {
		return fmt.Sprintf("%s does not run: %v", path, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return fmt.Sprintf("%s is Node.js %.40s, older than %d", path, version, oldestNode)
	}
	return ""
}

// getDriver installs the driver, or the missing part of it.
func (f *finder) getDriver(ctx context.Context) error {
	if f.checkDriver(ctx) == "" {
		f.report("The driver is at %s", f.driver)
		return nil
	}
	hasPackage := f.checkPackage() == ""
	if !hasPackage {
		if err := f.checkReplaceable(); err != nil {
			return err
		}
	}
	fresh, err := os.MkdirTemp(filepath.Dir(f.driver), ".driver-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := f.installNode(ctx, fresh); err != nil {
		return &Missing{What: "the browser driver", Reason: err.Error()}
	}
	if hasPackage {
		f.report("The driver at %s gets another node", f.driver)
		return os.Rename(filepath.Join(fresh, "node"), filepath.Join(f.driver, "node"))
	}
	if err := f.download(ctx, "playwright-core", filepath.Join(fresh, "package"), acceptAll); err != nil {
		return &Missing{What: "the browser driver", Reason: err.Error()}
	}
	if err := os.Chmod(fresh, 0o755); err != nil { // MkdirTemp creates it with mode 0700
		return err
	}
	if err := os.RemoveAll(f.driver); err != nil {
		return err
	}
	if err := os.Rename(fresh, f.driver); err != nil {
		return err
	}
	f.report("The driver is at %s", f.driver)
	return nil
}

// checkReplaceable returns an error if installing the driver would delete what the
// operator keeps in a configured folder. Our own folder may be replaced.
func (f *finder) checkReplaceable() error {
	entries, err := os.ReadDir(f.driver)
	if f.Driver == "" || errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	return &Missing{
		What:   "the browser driver",
		Reason: f.checkPackage() + "; name an empty or a new folder with --browser-driver",
	}
}

// installNode puts Node.js into a folder: a link to the one on PATH, or else npm's.
func (f *finder) installNode(ctx context.Context, folder string) error {
	reason := "there is no node on PATH"
	for _, name := range []string{"node", "nodejs"} {
		path, err := f.on.lookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		if reason = checkNode(ctx, path); reason == "" {
			f.report("Node.js is at %s", path)
			return os.Symlink(path, filepath.Join(folder, "node"))
		}
	}
	pin := "node-" + runtime.GOOS + "-" + runtime.GOARCH
	if _, ok := f.pins[pin]; !ok {
		return fmt.Errorf(
			"%s, and we know of none to download for %s: install Node.js %d or newer",
			reason, pin, oldestNode,
		)
	}
	f.report("%s", reason)
	unpacked := filepath.Join(folder, "unpacked")
	if err := f.download(ctx, pin, unpacked, func(name string) bool {
		return name == "bin/node"
	}); err != nil {
		return err
	}
	path := filepath.Join(folder, "node")
	if err := os.Rename(filepath.Join(unpacked, "bin", "node"), path); err != nil {
		return err
	}
	if reason := checkNode(ctx, path); reason != "" {
		return fmt.Errorf("%s: install Node.js %d or newer", reason, oldestNode)
	}
	return os.RemoveAll(unpacked)
}
