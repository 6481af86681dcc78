package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeFile is what these tests read of a compose file.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Target string }
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		Tmpfs       []string
		Environment map[string]string
		Networks    []string
	}
	Networks map[string]struct {
		IPAM struct{ Config []struct{ Subnet string } }
	}
}

// TestComposeFiles holds that every service with Satchel is confined, that Chromium can
// start in it, and that it trusts, or may reach, its own network only, which no other
// file uses.
func TestComposeFiles(t *testing.T) {
	paths, err := filepath.Glob("deploy/compose/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	usedBy := map[string]string{}
	for _, path := range paths {
		var file composeFile
		raw, err := os.ReadFile(path)
		if err == nil {
			err = yaml.Unmarshal(raw, &file)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		subnet := file.Networks["inside"].IPAM.Config[0].Subnet
		if other := usedBy[subnet]; other != "" {
			t.Errorf("%s and %s have the same network %s", path, other, subnet)
		}
		usedBy[subnet] = path
		for name, s := range file.Services {
			if s.Build.Target == "" {
				continue
			}
			if s.Build.Target != "browser" ||
				!s.ReadOnly ||
				!slices.Equal(s.CapDrop, []string{"ALL"}) ||
				!slices.Equal(s.Tmpfs, []string{"/tmp"}) ||
				!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true", "seccomp=./seccomp.json"}) {
				t.Errorf("%s: %s is not confined as the others: %+v", path, name, s)
			}
			for _, variable := range []string{"SATCHEL_TRUSTED_PROXIES", "SATCHEL_OUTBOUND_ALLOW"} {
				if value := s.Environment[variable]; value != "" && value != subnet {
					t.Errorf("%s: %s of %s is %s, and its network is %s", path, variable, name, value, subnet)
				}
			}
		}
	}
}

// TestSeccompProfile holds that the profile of the containers allows what confines
// scripts, documents and Chromium, and neither namespaces of mounts nor calls that
// manage the machine.
func TestSeccompProfile(t *testing.T) {
	var profile struct {
		DefaultAction string
		Syscalls      []struct {
			Names  []string
			Action string
			Args   []struct {
				Index    int
				Value    uint64
				ValueTwo uint64
				Op       string
			}
		}
	}
	raw, err := os.ReadFile("deploy/compose/seccomp.json")
	if err == nil {
		err = json.Unmarshal(raw, &profile)
	}
	if err != nil || profile.DefaultAction != "SCMP_ACT_ERRNO" {
		t.Fatal(profile.DefaultAction, err)
	}
	const newNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 // of mounts, cgroups, host names, IPC
	always := map[string]bool{}
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			switch {
			case rule.Action != "SCMP_ACT_ALLOW":
			case name == "clone" || name == "unshare":
				if a := rule.Args; len(a) != 1 ||
					a[0].Index != 0 ||
					a[0].Op != "SCMP_CMP_MASKED_EQ" ||
					a[0].Value != newNamespaces ||
					a[0].ValueTwo != 0 {
					t.Errorf("%s is allowed with %+v", name, a)
				}
			default:
				always[name] = len(rule.Args) == 0
			}
		}
	}
	for _, name := range strings.Fields(
		"landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp prctl chroot execve prlimit64 flock",
	) {
		if !always[name] {
			t.Errorf("%s is denied", name)
		}
	}
	for _, name := range strings.Fields("mount umount2 pivot_root setns bpf ptrace kexec_load init_module reboot " +
		"swapon perf_event_open keyctl io_uring_setup userfaultfd clone3 socket") {
		if always[name] {
			t.Errorf("%s is allowed", name)
		}
	}
}
