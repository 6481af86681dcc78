package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// help is what a command line prints that asks for help.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := Program{Version: "1.2.3", Getenv: func(string) string { return "" }, Out: &out}
	if err := p.Run(t.Context(), args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

var (
	flagLine    = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)
	exampleLine = regexp.MustCompile(`(?m)^Examples:\n((?:  .*\n)+)`)
)

func TestHelpShowsWhatACommandUses(t *testing.T) {
	all := []string{"config"}
	for _, s := range table {
		all = append(all, s.Flag)
	}
	slices.Sort(all)
	for _, tc := range []struct {
		command string
		flags   []string // in the order of the alphabet, without help
	}{
		{"", []string{"version"}},
		{"serve", all},
		{"config", []string{"config"}},
		{"doctor", []string{"browser-driver", "chromium", "config", "data", "master-key"}},
		{"backup", []string{"config", "data"}},
		{"restore", []string{"config", "data"}},
		{"key", nil},
		{"key create", []string{"agents", "config", "data", "master-key", "role"}},
		{"key list", []string{"config", "data", "master-key"}},
		{"key revoke", []string{"config", "data", "master-key"}},
		{"key rotate", []string{"config", "data", "master-key"}},
		{"browser", nil},
		{"browser install", []string{"browser-driver", "chromium", "config"}},
		{"version", nil},
	} {
		t.Run("satchel "+tc.command, func(t *testing.T) {
			text := help(t, append(strings.Fields(tc.command), "--help")...)
			var flags []string
			for _, m := range flagLine.FindAllStringSubmatch(text, -1) {
				if m[1] != "help" {
					flags = append(flags, m[1])
				}
			}
			if !slices.Equal(flags, tc.flags) {
				t.Errorf("shows %v, want %v\n%s", flags, tc.flags, text)
			}
			examples := exampleLine.FindStringSubmatch(text)
			if examples == nil || strings.Count(examples[1], "\n") != 1 || !strings.HasPrefix(examples[1], strings.TrimRight("  satchel "+tc.command, " ")) {
				t.Errorf("the example is not one line of this command:\n%s", text)
			}
		})
	}
}

// A flag is taken before the command too, and by commands whose help does not
// show it.
func TestFlagsOfOtherCommands(t *testing.T) {
	for _, args := range [][]string{
		{"--data", "elsewhere", "config"}, {"config", "--data", "elsewhere"}, {"config", "--data=elsewhere", "--addr", ":1", "--no-auth"},
	} {
		if text := help(t, args...); !strings.Contains(text, "data = elsewhere  # flag --data\n") {
			t.Errorf("%v prints\n%s", args, text)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"-v"}, {"version"}, {"version", "--config", "missing.toml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if got := help(t, args...); got != "1.2.3\n" && got != "satchel 1.2.3\n" {
				t.Errorf("prints %q", got)
			}
		})
	}
}
