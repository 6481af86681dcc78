package testenv

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asTests is the variable that makes this test binary run the tests of a machine that
// lacks something.
const asTests = "SATCHEL_TEST_LACKING"

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// TestLacking needs what is missing, in two subtests; it runs as a child of TestNeed.
func TestLacking(t *testing.T) {
	if os.Getenv(asTests) == "" {
		return
	}
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) { Need(t, "a typewriter", errors.New("run: buy one")) })
	}
	Program(t, "satchel-no-such-program")
	t.Error("went on")
}

func TestNeed(t *testing.T) {
	Need(t, "nothing", nil)
	for all, want := range map[string]string{
		"": "satchel/agent/testenv: skipped 1 tests, which need a typewriter, satchel-no-such-program; " +
			"to install it and run them: SATCHEL_TEST_ALL=1 go test satchel/agent/testenv\n",
		"1": "run: buy one",
	} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLacking$", "-test.v")
		child.Env = append(os.Environ(), asTests+"=1", "SATCHEL_TEST_ALL="+all)
		out, err := child.CombinedOutput()
		if (err == nil) != (all == "") ||
			!strings.Contains(string(out), want) ||
			strings.Contains(string(out), "went on") {
			t.Errorf("SATCHEL_TEST_ALL=%q: %v\n%s", all, err, out)
		}
	}
}
