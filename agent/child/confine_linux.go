package child

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// SupportedConfinement returns what the kernel offers.
func SupportedConfinement() Confinement {
	abi, err := kernel.LandlockGetABIVersion()
	if err != nil {
		abi = 0
	}
	return Confinement{NoNewPrivileges: true, Landlock: abi, Seccomp: seccompOffered()}
}

func seccompOffered() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(
		unix.SYS_SECCOMP,
		unix.SECCOMP_GET_ACTION_AVAIL,
		0,
		uintptr(unsafe.Pointer(&action)),
	)
	return errno == 0 && auditArch != 0
}

// apply applies c. Files that Go and the child read later have been opened or
// read before.
func (c Confinement) apply() error {
	_, _ = memoryPages()
	_, _ = time.Now().Zone()
	if c.NoNewPrivileges {
		if err := kernel.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	if c.Landlock > 0 {
		// Without rules, everything that the kernel's version supports is
		// denied.
		if err := landlock.V11.BestEffort().Restrict(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if c.Seccomp {
		if err := filterSystemCalls(); err != nil {
			return fmt.Errorf("seccomp: %w", err)
		}
	}
	return nil
}

// confineAndReport confines this process and returns what the kernel reports. The
// kernel does not report Landlock, except by refusing it.
func confineAndReport() (inForce Confinement, err error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return inForce, fmt.Errorf("child: %w", err)
	}
	defer status.Close()
	offered := SupportedConfinement()
	if err := confine(); err != nil {
		return inForce, err
	}
	text := make([]byte, 8<<10)
	n, err := status.ReadAt(text, 0)
	if n == 0 {
		return inForce, fmt.Errorf("child: %w", err)
	}
	return Confinement{
		NoNewPrivileges: strings.Contains(string(text[:n]), "\nNoNewPrivs:\t1\n"),
		Landlock:        offered.Landlock,
		Seccomp:         strings.Contains(string(text[:n]), "\nSeccomp:\t2\n"),
	}, nil
}
