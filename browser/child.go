package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Playwright starts the driver, and the driver Chromium, without a way for us
// to say how. So both are started by way of this program under other names: it
// sees to it that they end with the one who started them, cleans the
// environment, notes the process id, and becomes them.
const (
	driverName      = "node"               // what playwright-go runs in its driver folder
	chromiumName    = "satchel-chromium"   // what the driver starts as Chromium
	childConfigFile = "satchel-start.json" // beside them: what they stand for
)

// childConfig is what the names in a folder stand for.
type childConfig struct {
	Node        string   `json:"node"`
	Chromium    string   `json:"chromium"`
	Environment []string `json:"environment"`
}

// RunChild makes this process the browser's driver or Chromium when it was
// started in their place; it returns false in all other processes. The program
// and the tests of every package that opens sessions call it first, with
// os.Args.
func RunChild(args []string) bool {
	if len(args) == 0 {
		return false
	}
	name := filepath.Base(args[0])
	if name != driverName && name != chromiumName {
		return false
	}
	folder := filepath.Dir(args[0])
	raw, err := os.ReadFile(filepath.Join(folder, childConfigFile))
	if err != nil {
		return false
	}
	var o childConfig
	if err := json.Unmarshal(raw, &o); err != nil {
		fail(err)
	}
	if name == chromiumName {
		replaceWith(filepath.Join(folder, chromiumName+".pid"), o.Chromium, args, o.Environment)
	}
	if args[len(args)-1] == "--version" {
		// playwright-go asks at every start; reading is quicker than a process.
		fmt.Println("Version " + driverVersion(filepath.Join(folder, "package")))
		return true
	}
	replaceWith(filepath.Join(folder, driverName+".pid"), o.Node, args, o.Environment)
	return true
}

// replaceWith turns this process into another program; it never returns.
func replaceWith(pidFile, program string, args, environment []string) {
	if err := dieWithParent(); err != nil {
		fail(err)
	}
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		fail(err)
	}
	fail(replaceProcess(program, append([]string{program}, args[1:]...), environment))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "satchel:", err)
	os.Exit(127)
}

// driverVersion is what the driver's package says of itself; "" when it cannot
// be read.
func driverVersion(folder string) string {
	raw, err := os.ReadFile(filepath.Join(folder, "package.json"))
	var about struct {
		Version string `json:"version"`
	}
	if err != nil || json.Unmarshal(raw, &about) != nil {
		return ""
	}
	return about.Version
}

// passedVariables are the variables of the environment that Chromium and its driver
// see; the server's own may hold secrets.
var passedVariables = []string{"PATH", "HOME", "LANG", "LANGUAGE", "LC_", "TZ", "XDG_", "FONTCONFIG_", "LD_LIBRARY_PATH", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SystemRoot", "USERPROFILE", "LOCALAPPDATA"}

// childEnvironment is the environment of Chromium and its driver; temporary
// files go to temp.
func childEnvironment(environment []string, temp string) []string {
	out := []string{"TMPDIR=" + temp, "TMP=" + temp, "TEMP=" + temp}
	for _, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		for _, wanted := range passedVariables {
			if name == wanted || strings.HasSuffix(wanted, "_") && strings.HasPrefix(name, wanted) {
				out = append(out, line)
				break
			}
		}
	}
	return out
}
