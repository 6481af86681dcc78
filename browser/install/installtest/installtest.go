// Package installtest finds the browser that tests use.
package installtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"satchel/agent/testenv"
	"satchel/browser/install"
)

// Find finds Chromium and its driver, once. If every test must run, it installs them with
// the product's own installer.
var Find = sync.OnceValues(func() (install.Paths, error) {
	find := install.Find
	if testenv.All() {
		find = install.Ready
	}
	return find(context.Background(), install.Options{
		Chromium: os.Getenv("SATCHEL_CHROMIUM"),
		Driver:   os.Getenv("SATCHEL_BROWSER_DRIVER"),
		Getenv:   os.Getenv,
	})
})

// Need ends a test if Chromium or its driver is missing.
func Need(t testing.TB) install.Paths {
	t.Helper()
	p, err := Find()
	testenv.Need(t, "Chromium and its driver", err)
	return p
}
