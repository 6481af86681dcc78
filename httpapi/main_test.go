package httpapi

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
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
	flag.Parse()
	if limit := flag.Lookup("test.parallel"); limit.Value.String() == limit.DefValue {
		_ = limit.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // tests mostly wait
	}
	code := testenv.Run(m)
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
