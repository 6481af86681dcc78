package browser

import (
	"os"
	"testing"
)

// TestMain is also the driver and Chromium's first breath.
func TestMain(m *testing.M) {
	if RunChild(os.Args) {
		return
	}
	os.Exit(m.Run())
}
