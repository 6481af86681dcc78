package browser

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/playwright-community/playwright-go"
)

// Time limits of Chromium.
const (
	startTimeout = 40 * time.Second // to start, with its driver
	stopTimeout  = 5 * time.Second  // to exit on its own
)

// Disabled features of Chromium: those that Playwright 1.52 disables, since a
// second --disable-features replaces its list, and a window of the address bar
// that would cost each session a process.
const disabledFeatures = "AcceptCHFrame,AutoExpandDetailsElement,AvoidUnnecessaryBeforeUnloadCheckSync," +
	"CertificateTransparencyComponentUpdater,DeferRendererTasksAfterInput,DestroyProfileOnBrowserClose," +
	"DialMediaRouteProvider,ExtensionManifestV2Disabled,GlobalMediaControls,HttpsUpgrades,ImprovedCookieControls," +
	"LazyFrameLoading,LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,Translate," +
	"WebUIOmniboxPopup,WebUIOmniboxAimPopup"

// chromium is a running Chromium with the driver that controls it. Sessions
// share it. It is never restarted but replaced by a new one.
type chromium struct {
	headless  bool   // always for a remote one
	dedicated bool   // of one session, which a client of the DevTools protocol may use too
	relay     *relay // to a remote one; nil for one that was started here
	folder    *folder
	log       *slog.Logger
	driver    *playwright.Playwright
	browser   playwright.Browser
	devTools  playwright.CDPSession // of the browser as a whole

	heartbeats atomic.Int64 // number of answered heartbeats
	failure    error        // why heartbeats stopped; used only by watch
	lastID     atomic.Int64 // of commands of clients of the DevTools protocol

	done     chan struct{} // closed when it has ended or is abandoned
	doneOnce sync.Once
	cleaned  chan struct{} // closed when nothing of it is left
}

// kind is how Chromium is started.
type kind struct {
	headless  bool // without windows
	dedicated bool // for one session, with a socket for a client of the DevTools protocol
}

// flags returns Chromium's flags, in addition to Playwright's. offscreen means that
// windows are rendered without a display.
func flags(offscreen bool) []string {
	out := []string{
		"--disable-gpu",
		"--disable-quic",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-sync",
		"--disable-features=" + disabledFeatures,
		// All traffic goes through the proxy, but WebRTC uses UDP.
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--webrtc-ip-handling-policy=disable_non_proxied_udp",
	}
	if offscreen {
		out = append(out, "--ozone-platform=headless")
	}
	return out
}

// hasDisplay reports whether there is a display for windows. Without one they are
// rendered offscreen.
func (p Program) hasDisplay() bool {
	return slices.ContainsFunc(p.Environment, func(line string) bool {
		name, value, _ := strings.Cut(line, "=")
		return value != "" && (name == "DISPLAY" || name == "WAYLAND_DISPLAY")
	})
}

// start starts Chromium and its driver. Traffic outside sessions goes to proxy.
func start(ctx context.Context, program Program, kind kind, proxy string, log *slog.Logger) (*chromium, error) {
	folder, err := newFolder(program, kind.dedicated)
	if err != nil {
		return nil, err
	}
	c := &chromium{
		headless:  kind.headless,
		dedicated: kind.dedicated,
		folder:    folder,
		log:       log,
		done:      make(chan struct{}),
		cleaned:   make(chan struct{}),
	}
	return c.begin(ctx, func() (playwright.Browser, error) {
		made, err := c.driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
			ExecutablePath:  playwright.String(c.folder.in(chromiumName)),
			Headless:        &c.headless,
			Args:            flags(!c.headless && !program.hasDisplay()),
			ChromiumSandbox: playwright.Bool(os.Geteuid() != 0),
			DownloadsPath:   playwright.String(c.folder.in("downloads")),
			// Playwright would let a page flood the browser with navigations.
			IgnoreDefaultArgs: []string{"--disable-ipc-flooding-protection"},
			HandleSIGHUP:      playwright.Bool(false),
			HandleSIGINT:      playwright.Bool(false),
			HandleSIGTERM:     playwright.Bool(false),
			Proxy:             &playwright.Proxy{Server: proxy, Bypass: playwright.String("<-loopback>")},
			Timeout:           playwright.Float(startTimeout.Seconds() * 1000),
		})
		if err != nil {
			return nil, fmt.Errorf("start Chromium: %w", program.explain(err))
		}
		return made, nil
	})
}

// driverStart is held while a driver starts, since Playwright keeps its logger in a global
// variable.
var driverStart sync.Mutex

// begin starts the driver and opens a browser with it. If it fails, nothing is left
// running.
func (c *chromium) begin(ctx context.Context, open func() (playwright.Browser, error)) (*chromium, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.open(ctx, open); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (c *chromium) open(ctx context.Context, open func() (playwright.Browser, error)) (err error) {
	output := &tail{}
	c.driver, err = Within(ctx, func() (*playwright.Playwright, error) {
		driverStart.Lock()
		defer driverStart.Unlock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return playwright.Run(&playwright.RunOptions{
			DriverDirectory:     c.folder.path,
			SkipInstallBrowsers: true,
			Stdout:              output,
			Stderr:              output,
			Logger:              c.log,
		})
	})
	if err != nil {
		return fmt.Errorf("start the browser's driver: %w: %s", err, output)
	}
	if c.browser, err = Within(ctx, open); err != nil {
		return err
	}
	c.browser.OnDisconnected(func(playwright.Browser) { c.abandon() })
	c.devTools, err = Within(ctx, c.browser.NewBrowserCDPSession)
	return err
}

// hasEnded reports whether it has ended or is abandoned.
func (c *chromium) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// abandon marks Chromium as unusable.
func (c *chromium) abandon() {
	c.doneOnce.Do(func() { close(c.done) })
}

// end ends Chromium and its driver, gracefully if possible, and removes their
// files.
func (c *chromium) end() {
	c.abandon()
	if c.browser != nil && c.failure == nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		short, stop := context.WithTimeout(ctx, time.Second)
		if c.sendHeartbeat(short) == nil {
			_, _ = Within(ctx, func() (any, error) {
				return nil, c.browser.Close()
			})
		}
		stop()
		cancel()
	}
	for _, name := range []string{chromiumName, driverName} {
		if pid := c.folder.pid(name); pid > 0 && running(pid) {
			if name == chromiumName {
				killGroup(pid)
			} else {
				kill(pid)
			}
		}
	}
	if c.driver != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		_, _ = Within(ctx, func() (any, error) {
			return nil, c.driver.Stop()
		}) // it was killed, so this may fail
		cancel()
	}
	if err := c.folder.remove(); err != nil {
		c.log.Warn("remove temporary files of browser", "error", err)
	}
	if c.relay != nil {
		c.relay.Close()
	}
	close(c.cleaned)
}

// Within runs a Playwright call, which cannot be cancelled, and waits for it
// until ctx ends. A panic of Playwright becomes an error.
func Within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.err = fmt.Errorf("playwright: %v", r)
			}
			done <- o
		}()
		o.value, o.err = call()
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - 4096; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
