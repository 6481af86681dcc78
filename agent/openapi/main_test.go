package openapi

import (
	"os"
	"testing"
)

// TestMain is also the entry point of the child that reads descriptions.
func TestMain(m *testing.M) {
	if RunChild(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}
