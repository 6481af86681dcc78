package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"satchel/agent"
)

// DriverVersion is the only version of playwright-core that the client library of
// package browser supports.
const DriverVersion = "1.52.0"

// Command is the command that installs what is missing.
const Command = "satchel browser install"

// lockTimeout limits the wait for another installer of the same driver.
const lockTimeout = 20 * time.Minute

// Options specify where to search. The zero value searches everywhere and keeps
// downloads in the user's cache folder.
type Options struct {
	Chromium string                   // path of the browser; "" searches for one
	Driver   string                   // folder of the driver; "" means one in the user's cache folder
	Remote   bool                     // Chromium runs on another machine: only the driver is needed
	Getenv   func(string) string      // the environment; nil means an empty one
	Out      func(string)             // is called with a line for each step; may be nil
	on       *machine                 // nil means this one
	pins     map[string]pinnedPackage // nil means pins
}

// Paths are the paths of a working browser and its driver. Driver is the folder with
// Playwright's package and its Node.js.
type Paths struct {
	Chromium, Driver, Node string
	ChromiumVersion        string // as reported by the browser
}

// Missing is the error of Find and Ready if there is no working Chromium or no working
// driver. It includes the reason and the command to run.
type Missing struct {
	What   string // "Chromium" or "the browser driver"
	Reason string
	Run    string // a command line; "" if none would help
}

func (m *Missing) Error() string {
	text := fmt.Sprintf("%s is missing or does not work: %s", m.What, m.Reason)
	if m.Run != "" {
		text += "; run: " + m.Run
	}
	return text
}

// Find looks for the browser and its driver without changing anything. It runs each
// once to check that it works, which takes a fraction of a second.
func Find(ctx context.Context, o Options) (Paths, error) {
	f, err := newFinder(o)
	if err != nil {
		return Paths{}, err
	}
	p := Paths{Driver: f.driver, Node: filepath.Join(f.driver, "node")}
	if reason := f.checkDriver(ctx); reason != "" {
		return p, &Missing{What: "the browser driver", Reason: reason, Run: Command}
	}
	if !o.Remote {
		p.Chromium, p.ChromiumVersion, err = f.chromium(ctx)
	}
	return p, err
}

// Ready finds the browser and its driver, or installs them, which may take minutes: it
// downloads files and, as root, installs a package of the system. Concurrent calls wait
// for each other. The error says what was tried.
func Ready(ctx context.Context, options Options) (Paths, error) {
	if p, err := Find(ctx, options); err == nil {
		return p, nil
	}
	finder, err := newFinder(options)
	if err != nil {
		return Paths{}, err
	}
	if err := os.MkdirAll(filepath.Dir(finder.driver), 0o755); err != nil {
		return Paths{}, err
	}
	locking, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	unlock, err := lock(locking, finder.driver+".lock")
	if err != nil {
		return Paths{}, fmt.Errorf("another installer has been at work on %s for too long: %w", finder.driver, err)
	}
	defer unlock()
	if err := finder.getDriver(ctx); err != nil {
		return Paths{}, err
	}
	if !options.Remote {
		if err := finder.installChromium(ctx); err != nil {
			return Paths{}, err
		}
	}
	return Find(ctx, options)
}

// Doctor reports what works, and starts the browser once. A server without a browser
// does everything but browser sessions, so a missing browser is only a problem if the
// settings require one.
func (o Options) Doctor(ctx context.Context) []agent.Finding {
	paths, err := Find(ctx, o)
	if err == nil && !o.Remote {
		if err = checkStart(ctx, paths.Chromium, os.Geteuid() == 0); err != nil {
			err = fmt.Errorf("%s does not start: %w", paths.browser(), err)
		}
	}
	var missing *Missing
	switch {
	case err == nil:
		return []agent.Finding{{
			OK:      true,
			Subject: "browser",
			Message: fmt.Sprintf("%s, driver %s at %s", paths.browser(), DriverVersion, paths.Driver),
		}}
	case errors.As(err, &missing) &&
		o.Chromium == "" &&
		o.Driver == "" &&
		!o.Remote:
		return []agent.Finding{{
			OK:      true,
			Subject: "browser",
			Message: "not installed, so browser sessions are off: " + err.Error(),
		}}
	default:
		return []agent.Finding{{Subject: "browser", Message: err.Error()}}
	}
}

// Install implements the command "satchel browser install": it calls Ready, and writes
// its steps and its outcome to w.
func (o Options) Install(ctx context.Context, w io.Writer) error {
	o.Out = func(line string) { fmt.Fprintln(w, line) }
	p, err := Ready(ctx, o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Browser: %s\nDriver: playwright-core %s at %s\n", p.browser(), DriverVersion, p.Driver)
	return err
}

// browser returns the browser's version and path.
func (p Paths) browser() string {
	if p.Chromium == "" {
		return "on another machine"
	}
	return p.ChromiumVersion + " at " + p.Chromium
}

// finder is one search, with the defaults of its options filled in.
type finder struct {
	Options
	driver   string // folder
	browsers string // where Playwright installs its own browsers
}

func newFinder(options Options) (*finder, error) {
	if options.Getenv == nil {
		options.Getenv = func(string) string { return "" }
	}
	if options.Out == nil {
		options.Out = func(string) {}
	}
	if options.on == nil {
		options.on = thisMachine()
	}
	if options.pins == nil {
		options.pins = pins
	}
	f := &finder{Options: options, driver: options.Driver}
	if f.driver == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, &Missing{
				What:   "the browser driver",
				Reason: "there is no cache folder to keep it in: name a folder with --browser-driver",
			}
		}
		f.driver = filepath.Join(cache, "satchel", "playwright-"+DriverVersion)
	}
	path, err := filepath.Abs(f.driver)
	if err != nil {
		return nil, err
	}
	f.driver, f.browsers = path, filepath.Join(filepath.Dir(path), "browsers")
	return f, nil
}

func (f *finder) report(format string, args ...any) {
	f.Out(fmt.Sprintf(format, args...))
}
