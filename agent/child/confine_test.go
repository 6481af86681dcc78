package child

import (
	"errors"
	"strings"
	"testing"
)

func TestFinding(t *testing.T) {
	all := Confinement{NoNewPrivileges: true, Landlock: 7, Seccomp: true}
	cases := []struct {
		name             string
		offered, inForce Confinement
		err              error
		ok               bool
		message          string
	}{
		{"all", all, all, nil, true, "in force: no new privileges, Landlock (ABI 7), seccomp"},
		{
			"no Landlock",
			Confinement{NoNewPrivileges: true, Seccomp: true},
			Confinement{NoNewPrivileges: true, Seccomp: true},
			nil,
			true,
			"in force: no new privileges, seccomp",
		},
		{
			"nothing",
			Confinement{NoNewPrivileges: true},
			Confinement{NoNewPrivileges: true},
			nil,
			true,
			"limits of time and memory only",
		},
		{"another system", Confinement{}, Confinement{}, nil, true, "limits of time and memory only"},
		{"not in force", all, Confinement{Landlock: 7}, nil, false, "in force: Landlock (ABI 7)"},
		{"nothing in force", all, Confinement{}, nil, false, "in force: nothing"},
		{"no child", all, Confinement{}, errors.New("no luck"), false, "no luck"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := finding(c.offered, c.inForce, c.err)
			if got.OK != c.ok || !strings.Contains(got.Message, c.message) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
