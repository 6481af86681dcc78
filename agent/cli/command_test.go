package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// help returns the output of a command line that requests help.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := Program{
		Version: Version{
			Number:   "1.2.3",
			Commit:   "0badcafe",
			Date:     "2026-11-23T10:00:00Z",
			Releases: "https://example.com/releases",
		},
		Getenv: func(string) string { return "" },
		Out:    &out,
	}
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
		flags   []string // in alphabetical order, without help
	}{
		{"", []string{"version"}},
		{"serve", all},
		{"open", all},
		{"config", []string{"config"}},
		{
			"doctor",
			[]string{
				"addr", "browser-cdp", "browser-driver", "chromium", "config", "data", "master-key", "probe",
				"replicate",
			},
		},
		{"backup", []string{"config", "data"}},
		{"restore", []string{"all", "at", "config", "data", "from", "to"}},
		{"replicas", nil},
		{"replicas list", []string{"config", "from", "replicate"}},
		{"cluster", nil},
		{"cluster import", []string{"cluster", "config", "master-key"}},
		{"cluster export", []string{"cluster", "config", "master-key"}},
		{"cluster recover", []string{"cluster", "config", "master-key"}},
		{"cluster resume", []string{"cluster", "config", "master-key"}},
		{"cluster status", []string{"agents", "json", "key-file", "limit", "server"}},
		{"cluster move", []string{"json", "key-file", "server"}},
		{"cluster drain", []string{"json", "key-file", "no-wait", "server"}},
		{"key", nil},
		{"key create", []string{"agents", "config", "data", "default-role", "master-key", "role", "strangers-read"}},
		{"key list", []string{"config", "data", "master-key"}},
		{"key revoke", []string{"config", "data", "master-key"}},
		{"key rotate", []string{"config", "data", "master-key"}},
		{"browser", nil},
		{"browser install", []string{"browser-cdp", "browser-driver", "chromium", "config"}},
		{"version", nil},
		{"upgrade", nil},
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
			if examples == nil ||
				strings.Count(examples[1], "\n") != 1 ||
				!strings.HasPrefix(examples[1], strings.TrimRight("  satchel "+tc.command, " ")) {
				t.Errorf("the example is not one line of this command:\n%s", text)
			}
		})
	}
}

// A flag is also accepted before the command, and by commands whose help does not
// list it.
// Errors about a command line name the valid arguments or commands.
func TestInvalidCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"ask":                 "usage: satchel ask QUESTION",
		"export bakery":       "usage: satchel export AGENT DIR",
		"sql":                 "usage: satchel sql STATEMENT",
		"sorces":              `unknown command "sorces" for "satchel"; did you mean sources?`,
		"sources ad x":        "did you mean add?",
		"sources zzzzzz":      "see satchel sources --help",
		"key":                 "usage: satchel key create|list|revoke|rotate",
		"key bogus":           `unknown command "bogus" for "satchel key"; see satchel key --help`,
		"key lst":             "did you mean list?",
		"key --bogus":         "unknown flag: --bogus; see satchel key --help",
		"browser bogus":       "see satchel browser --help",
		"cluster bogus":       "see satchel cluster --help",
		"model bogus":         "see satchel model --help",
		"import bogus":        "see satchel import --help",
		"replicas bogus":      "see satchel replicas --help",
		"completion bogus":    "see satchel completion --help",
		"help bogus":          `unknown command "bogus" for "satchel"`,
		"help key bogus":      `unknown command "bogus" for "satchel key"`,
		"ask x --conversaton": "unknown flag: --conversaton; see satchel ask --help",
	} {
		var out bytes.Buffer
		p := Program{Getenv: func(string) string { return "" }, Out: &out, Notes: new(bytes.Buffer)}
		if err := p.Run(t.Context(), strings.Fields(line)); err == nil ||
			!strings.Contains(err.Error(), want) ||
			out.Len() > 0 {
			t.Errorf("%s: %v, want %s; prints %q", line, err, want, out.String())
		}
	}
}

// The help command and --help print the same, also for commands that only have
// subcommands.
func TestHelpOfCommands(t *testing.T) {
	for _, name := range []string{"", "key", "key create", "cluster", "completion", "help"} {
		flag := help(t, append(strings.Fields(name), "--help")...)
		if word := help(t, append([]string{"help"}, strings.Fields(name)...)...); word != flag ||
			!strings.Contains(word, "Usage:\n  satchel "+name) {
			t.Errorf("help %s prints\n%s\nand --help\n%s", name, word, flag)
		}
	}
}

func TestFlagsOfOtherCommands(t *testing.T) {
	for _, args := range [][]string{
		{"--data", "elsewhere", "config"},
		{"config", "--data", "elsewhere"},
		{"config", "--data=elsewhere", "--addr", ":1", "--no-auth"},
	} {
		if text := help(t, args...); !strings.Contains(text, "data = elsewhere  # flag --data\n") {
			t.Errorf("%v prints\n%s", args, text)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"-v"}, {"version"}, {"version", "--config", "missing.toml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			want := fmt.Sprintf(
				"1.2.3 (commit 0badcafe, 2026-11-23, %s, %s/%s)\n",
				runtime.Version(),
				runtime.GOOS,
				runtime.GOARCH,
			)
			if got := help(t, args...); got != want && got != "satchel "+want {
				t.Errorf("prints %q", got)
			}
		})
	}
}

func TestUpgradeSaysWhere(t *testing.T) {
	if got := help(t, "upgrade"); !strings.Contains(got, "https://example.com/releases") ||
		!strings.Contains(got, "1.2.3 (") {
		t.Errorf("prints %q", got)
	}
	if got := (Version{Number: "1.2.3"}).upgrade(); !strings.Contains(got, "built from source") {
		t.Errorf("prints %q", got)
	}
}
