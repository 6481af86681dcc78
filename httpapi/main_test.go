package httpapi

import (
	"os"
	"testing"

	"satchel/agent/openapi"
	"satchel/agent/script"
	"satchel/agent/testenv"
	"satchel/browser"
	"satchel/vector/document"
)

// TestMain also runs the child that reads documents.
func TestMain(m *testing.M) {
	if browser.RunChild(os.Args) ||
		document.RunChild(os.Args[1:]) ||
		openapi.RunChild(os.Args[1:]) ||
		script.RunChild(os.Args[1:]) {
		return
	}
	os.Exit(testenv.Run(m))
}
