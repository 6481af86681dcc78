package child

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"satchel/agent"
)

// Confinement is what the kernel denies a child in addition to Limits: files,
// the network, other processes and other programs. A child only has its
// standard input and output.
type Confinement struct {
	NoNewPrivileges bool
	Landlock        int  // version of its ABI; 0 if it is not available
	Seccomp         bool // a system call filter
}

// None reports whether the kernel offers no confinement.
func (c Confinement) None() bool {
	return c.Landlock == 0 && !c.Seccomp
}

// Warn logs a warning if the kernel offers no confinement, or if children cannot be started:
// on Linux, that and their limits of memory need /proc.
func (c Confinement) Warn(log *slog.Logger) {
	if _, err := os.Stat(executable()); err != nil {
		log.Warn("scripts cannot run, and most documents cannot be read", "error", err)
	}
	if c.None() {
		log.Warn("this system offers neither Landlock nor seccomp: scripts and document parsers are " +
			"limited in time and memory only")
	}
}

func (c Confinement) String() string {
	var parts []string
	if c.NoNewPrivileges {
		parts = append(parts, "no new privileges")
	}
	if c.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock (ABI %d)", c.Landlock))
	}
	if c.Seccomp {
		parts = append(parts, "seccomp")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// confine applies what the kernel offers to this process, including all current
// and future threads. If the kernel offers a mechanism but refuses to apply it,
// that is an error and the child must not continue.
func confine() error {
	if err := SupportedConfinement().apply(); err != nil {
		return fmt.Errorf("child: confinement is offered and refused: %w", err)
	}
	return nil
}

// reportRole is the role of a child that reports its own confinement.
const reportRole = "report-confinement"

// RunChild does a child's work and returns true if this process was started by
// Doctor; otherwise it returns false immediately.
func RunChild(args []string) bool {
	if !HasRole(reportRole, args) {
		return false
	}
	inForce, err := confineAndReport()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(inForce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// ActiveConfinement starts a child and returns the confinement in effect.
func ActiveConfinement(ctx context.Context) (inForce Confinement, err error) {
	p, err := Start(reportRole)
	if err != nil {
		return inForce, err
	}
	defer p.Close()
	defer context.AfterFunc(ctx, p.Kill)()
	if err := json.NewDecoder(p.Stdout).Decode(&inForce); err != nil {
		p.Close()
		return inForce, fmt.Errorf("child: no report of its confinement: %w", p.Err())
	}
	return inForce, nil
}

// Doctor reports how the kernel confines scripts and document parsers.
func Doctor(ctx context.Context) []agent.Finding {
	inForce, err := ActiveConfinement(ctx)
	return []agent.Finding{finding(SupportedConfinement(), inForce, err)}
}

func finding(offered, inForce Confinement, err error) agent.Finding {
	f := agent.Finding{Subject: "confinement of scripts and documents"}
	switch {
	case err != nil:
		f.Message = fmt.Sprintf("their process cannot be started: %v", err)
	case inForce != offered:
		f.Message = fmt.Sprintf("this kernel offers %s; in force: %s", offered, inForce)
	case offered.None():
		f.OK, f.Message =
			true, "this system offers neither Landlock nor seccomp, so they have limits of time and memory only"
	default:
		f.OK, f.Message = true, "in force: "+offered.String()
	}
	return f
}
