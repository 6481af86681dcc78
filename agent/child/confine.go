package child

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"satchel/agent"
)

// Confinement is what the kernel keeps a child from, besides Limits: files,
// the network, other processes and other programs. A child has its standard
// input and output alone.
type Confinement struct {
	NoNewPrivileges bool
	Landlock        int  // version of its ABI; 0: not there
	Seccomp         bool // a filter of system calls
}

// None reports whether the kernel keeps a child from nothing.
func (c Confinement) None() bool { return c.Landlock == 0 && !c.Seccomp }

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

// confine puts what the kernel offers in force for this process, all its
// threads and those to come. Where the kernel offers a part of it and refuses
// it then, that is an error: the child must not continue.
func confine() error {
	if err := Offered().apply(); err != nil {
		return fmt.Errorf("child: confinement is offered and refused: %w", err)
	}
	return nil
}

// reportRole is the role of a child that reports its own confinement.
const reportRole = "report-confinement"

// RunChild does a child's work and returns true when this process was started
// by Doctor, else it returns false at once.
func RunChild(args []string) bool {
	if !Is(reportRole, args) {
		return false
	}
	inForce, err := confineAndLook()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(inForce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// Examine starts a child and returns what is in force in it.
func Examine(ctx context.Context) (inForce Confinement, err error) {
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

// Doctor says what the kernel keeps scripts and readers of documents from.
func Doctor(ctx context.Context) []agent.Finding {
	inForce, err := Examine(ctx)
	return []agent.Finding{finding(Offered(), inForce, err)}
}

func finding(offered, inForce Confinement, err error) agent.Finding {
	f := agent.Finding{Subject: "confinement of scripts and documents"}
	switch {
	case err != nil:
		f.Message = fmt.Sprintf("their process cannot be started: %v", err)
	case inForce != offered:
		f.Message = fmt.Sprintf("this kernel offers %s; in force: %s", offered, inForce)
	case offered.None():
		f.OK, f.Message = true, "this system offers neither Landlock nor seccomp, so they have limits of time and memory only"
	default:
		f.OK, f.Message = true, "in force: "+offered.String()
	}
	return f
}
