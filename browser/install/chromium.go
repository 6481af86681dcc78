package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// machine describes the machine on which the browser is searched for and installed.
type machine struct {
	lookPath   func(name string) (string, error) // finds a program on PATH
	usualPaths []string                          // paths where browsers are usually installed, as glob patterns
	npmrc      []string                          // paths of npm's machine-wide settings
	root       bool                              // the user is root and may install packages
}

func thisMachine() *machine {
	return &machine{
		lookPath:   exec.LookPath,
		usualPaths: usualPlaces[runtime.GOOS],
		npmrc:      npmrc,
		root:       os.Geteuid() == 0,
	}
}

// programNames are the names of Chromium on PATH, open-source builds first.
var programNames = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"}

var usualPlaces = map[string][]string{
	"linux": {
		"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/lib64/chromium-browser/chromium-browser",
		"/snap/bin/chromium", "/usr/bin/google-chrome-stable", "/opt/google/chrome/chrome",
	},
	"darwin": {
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	},
}

// downloaded are the paths, as glob patterns, of the executable within Playwright's
// folder of browsers.
var downloaded = []string{
	"chromium-*/chrome-linux/chrome", "chromium-*/chrome-mac/Chromium.app/Contents/MacOS/Chromium",
}

// chromium returns the path and version of a browser that runs.
func (f *finder) chromium(ctx context.Context) (path, version string, err error) {
	if f.Chromium != "" {
		version, err := programVersion(ctx, f.Chromium)
		if err != nil {
			return "", "", &Missing{
				What:   "Chromium",
				Reason: fmt.Sprintf("the setting chromium names %s, which does not run: %v", f.Chromium, err),
			}
		}
		return f.Chromium, version, nil
	}
	reason := "none on PATH and none in the usual places"
	for _, path := range f.candidates() {
		version, err := programVersion(ctx, path)
		if err == nil {
			return path, version, nil
		}
		reason = fmt.Sprintf("%s does not run: %v", path, err)
	}
	return "", "", &Missing{What: "Chromium", Reason: reason, Run: Command}
}

func (f *finder) candidates() []string {
	var found []string
	for _, name := range programNames {
		if path, err := f.on.lookPath(name); err == nil {
			found = append(found, path)
		}
	}
	patterns := append([]string(nil), f.on.usualPaths...)
	for _, inside := range downloaded {
		patterns = append(patterns, filepath.Join(f.browsers, inside))
	}
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern) // the patterns are constants and valid
		found = append(found, paths...)
	}
	return found
}

var digits = regexp.MustCompile(`\d+\.\d+`)

// programVersion runs a program with --version and returns the first line that contains
// a version. A browser whose libraries are missing fails here.
func programVersion(ctx context.Context, path string) (string, error) {
	out, err := command{
		limit: 20 * time.Second,
		name:  path,
		args:  []string{"--version"},
	}.run(ctx)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if digits.MatchString(line) {
			return strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("it says %q in the place of a version", lastErrorLine(out))
}

// installChromium installs a browser if there is none.
func (f *finder) installChromium(ctx context.Context) error {
	path, version, err := f.chromium(ctx)
	if err == nil {
		f.report("%s is at %s", version, path)
		return nil
	}
	if f.Chromium != "" {
		return err // a browser that the operator configured is not replaced
	}
	f.report("No Chromium on this machine")
	var tried []string
	for _, way := range []func(context.Context) error{f.installWithPlaywright, f.installPackage} {
		err := way(ctx)
		if err == nil {
			if path, version, err = f.chromium(ctx); err == nil {
				f.report("%s is at %s", version, path)
				return nil
			}
		}
		f.report("That failed: %v", err)
		tried = append(tried, err.Error())
	}
	line := Command
	if m, ok := f.manager(); ok && !f.on.root {
		line = "sudo " + m.line()
	}
	return &Missing{
		What:   "Chromium",
		Reason: strings.Join(tried, "; ") + "; or install one and name it with --chromium",
		Run:    line,
	}
}

// installWithPlaywright has Playwright download the Chromium that it was built for.
func (f *finder) installWithPlaywright(ctx context.Context) error {
	f.report("Playwright downloads one to %s", f.browsers)
	_, err := command{
		limit: 10 * time.Minute,
		name:  filepath.Join(f.driver, "node"),
		args:  []string{filepath.Join(f.driver, "package", "cli.js"), "install", "--no-shell", "chromium"},
		env:   []string{"PLAYWRIGHT_BROWSERS_PATH=" + f.browsers, "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=15000"},
	}.run(ctx)
	if err != nil {
		return fmt.Errorf("the download by Playwright: %w", err)
	}
	return nil
}

// packageManager is a package manager, and how it installs Chromium.
type packageManager struct {
	program string
	before  []string // run first; nil for none
	install []string
}

// line returns the command line, as a person would type it.
func (m packageManager) line() string {
	return m.program + " " + strings.Join(m.install, " ")
}

var managers = []packageManager{
	{
		program: "apt-get",
		before:  []string{"-o", "DPkg::Lock::Timeout=300", "update"},
		install: []string{"-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", "chromium"},
	},
	{program: "dnf", install: []string{"install", "-y", "chromium"}},
	{program: "apk", install: []string{"add", "--no-cache", "chromium"}},
}

func (f *finder) manager() (packageManager, bool) {
	for _, m := range managers {
		if _, err := f.on.lookPath(m.program); err == nil {
			return m, true
		}
	}
	return packageManager{}, false
}

// installPackage installs Chromium with the system's package manager, which requires
// root.
func (f *finder) installPackage(ctx context.Context) error {
	manager, ok := f.manager()
	if !ok {
		return fmt.Errorf("no package manager that we know")
	}
	if !f.on.root {
		return fmt.Errorf("%s needs root", manager.program)
	}
	for _, args := range [][]string{manager.before, manager.install} {
		if args == nil {
			continue
		}
		f.report("Running %s %s", manager.program, strings.Join(args, " "))
		path, err := f.on.lookPath(manager.program)
		if err != nil {
			return err
		}
		if _, err := (command{
			limit: 10 * time.Minute,
			name:  path,
			args:  args,
			env:   []string{"DEBIAN_FRONTEND=noninteractive"},
		}).run(ctx); err != nil {
			return fmt.Errorf("%s: %w", manager.program, err)
		}
	}
	return nil
}
