package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Playwright starts the driver, and the driver starts Chromium, and there is no
// way to control how. Therefore both are started through this program under
// other names: it makes them end with their parent, cleans the environment,
// records the process id, and then replaces itself with them.
const (
	driverName      = "node"               // what playwright-go runs in its driver folder
	chromiumName    = "satchel-chromium"   // what the driver starts as Chromium
	childConfigFile = "satchel-start.json" // next to them: what they stand for
)

// childConfig is the configuration of the names in a folder.
type childConfig struct {
	Node        string   `json:"node"`
	Chromium    string   `json:"chromium"`
	Environment []string `json:"environment"`
	Socket      string   `json:"socket,omitempty"` // where clients of the DevTools protocol connect; "" for none
}

// RunChild turns this process into the browser's driver or Chromium if it was
// started in their place; otherwise it returns false. The program, and the
// tests of every package that opens sessions, must call it first, with os.Args.
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
	var config childConfig
	if err := json.Unmarshal(raw, &config); err != nil {
		fail(err)
	}
	switch {
	case name == chromiumName && config.Socket != "":
		fail(shareChromium(filepath.Join(folder, chromiumName+".pid"), config, args))
	case name == chromiumName:
		replaceWith(filepath.Join(folder, chromiumName+".pid"), config.Chromium, args, config.Environment)
	}
	if args[len(args)-1] == "--version" {
		// playwright-go asks at every start; reading is faster than a process
		fmt.Println("Version " + driverVersion(filepath.Join(folder, "package")))
		return true
	}
	replaceWith(filepath.Join(folder, driverName+".pid"), config.Node, args, config.Environment)
	return true
}

// replaceWith turns this process into another program. It never returns.
func replaceWith(pidFile, program string, args, environment []string) {
	if err := dieWithParent(); err != nil {
		fail(err)
	}
	if err := os.WriteFile(
		pidFile,
		[]byte(strconv.Itoa(os.Getpid())),
		0o600,
	); err != nil {
		fail(err)
	}
	fail(replaceProcess(program, append([]string{program}, args[1:]...), environment))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "satchel:", err)
	os.Exit(127)
}

// driverVersion returns the version in the driver's package, or "" if it cannot
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

// passedVariables are the environment variables passed to Chromium and its
// driver. Others of the server may contain secrets.
var passedVariables = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "LC_", "TZ", "XDG_", "FONTCONFIG_", "LD_LIBRARY_PATH", "DISPLAY", "XAUTHORITY",
	"WAYLAND_DISPLAY", "SystemRoot", "USERPROFILE", "LOCALAPPDATA",
}

// childEnvironment returns the environment of Chromium and its driver.
// Temporary files go to temp.
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
