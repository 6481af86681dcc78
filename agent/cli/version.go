package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version identifies the build of the program.
type Version struct {
	Number   string
	Commit   string // short hash; "" is unknown
	Date     string // of the commit, in RFC 3339; "" is unknown
	Releases string // address of the page with all releases; "" is unknown
}

// Complete returns v with unknown fields filled in from what Go recorded about the
// checkout at build time.
func (v Version) Complete() Version {
	info, ok := debug.ReadBuildInfo()
	if !ok || v.Commit != "" {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(len(s.Value), 8)]
		case "vcs.time":
			v.Date = s.Value
		}
	}
	return v
}

// String returns the number with commit, date, Go version and platform.
func (v Version) String() string {
	parts := []string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if v.Date != "" {
		parts = append([]string{strings.SplitN(v.Date, "T", 2)[0]}, parts...)
	}
	if v.Commit != "" {
		parts = append([]string{"commit " + v.Commit}, parts...)
	}
	return fmt.Sprintf("%s (%s)", v.Number, strings.Join(parts, ", "))
}

// upgrade returns how to get a newer version: packages own their files, so the
// program never replaces itself.
func (v Version) upgrade() string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is satchel %s.\n", v)
	if v.Releases == "" {
		b.WriteString("It was built from source: update the checkout and build again.\n")
	} else {
		fmt.Fprintf(&b, "Newer versions are at %s.\n", v.Releases)
		b.WriteString(
			"Install one the way this one was installed: by the package manager, the container image, or install.sh.\n",
		)
	}
	b.WriteString("Back up first: satchel backup AGENT FILE. Files of this version open in every later " +
		"one; see docs/upgrade.md.\n")
	return b.String()
}
