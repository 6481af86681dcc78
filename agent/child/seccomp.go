//go:build linux && (amd64 || arm64)

package child

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter allows what the Go runtime needs for memory, threads, time and its
// own signals, and reading and writing open files. Everything else fails with
// EPERM: opening files, sockets, other programs, other processes, mounts,
// executable memory. A new system call in a library is thus an error that it
// can handle; a call with the numbers of another architecture kills the
// process.

// unconditionalCalls are allowed with any arguments.
var unconditionalCalls = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_CLOSE,
	unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK,
	unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME,
	unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_SETITIMER, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM,
}, archCalls...)

// condition holds if the lower half of an argument, masked by mask, has a
// value.
type condition struct {
	argument    uint32 // from 0
	mask, value uint32
}

const allBits = ^uint32(0)

// conditionalCall is allowed if all its conditions hold. The same call may have
// several entries.
type conditionalCall struct {
	number     uint32
	conditions []condition
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func conditionalCalls() []conditionalCall {
	own := uint32(os.Getpid())
	calls := []conditionalCall{
		{
			unix.SYS_CLONE,
			[]condition{{
				0,
				unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_PTRACE | namespaces,
				unix.CLONE_THREAD | unix.CLONE_VM,
			}},
		},
		{unix.SYS_TGKILL, []condition{{0, allBits, own}}},
		{unix.SYS_KILL, []condition{{0, allBits, own}}},
		{unix.SYS_MMAP, []condition{{2, unix.PROT_EXEC, 0}}},
		{unix.SYS_MPROTECT, []condition{{2, unix.PROT_EXEC, 0}}},
		{unix.SYS_PRCTL, []condition{{0, allBits, unix.PR_SET_VMA}}},
		{unix.SYS_SETPRIORITY, []condition{{0, allBits, syscall.PRIO_PGRP}, {1, allBits, 0}}},
	}
	for _, command := range []uint32{unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL} {
		calls = append(calls, conditionalCall{unix.SYS_FCNTL, []condition{{1, allBits, command}}})
	}
	return append(calls, archConditionalCalls...)
}

// Offsets in struct seccomp_data. Both architectures are little-endian.
const (
	offNumber    = 0
	offArch      = 4
	offArguments = 16
)

// filter returns the program that the kernel runs for each system call.
func filter() []bpf.Instruction {
	load := func(offset uint32) bpf.Instruction {
		return bpf.LoadAbsolute{Off: offset, Size: 4}
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	kill := bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	out := []bpf.Instruction{
		load(offArch), bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1}, kill,
		load(offNumber), bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1}, kill,
	}
	for _, number := range unconditionalCalls {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, allow)
	}
	for _, call := range conditionalCalls() {
		skip := uint8(3*len(call.conditions) + 1)
		out = append(out, load(offNumber), bpf.JumpIf{
			Cond:     bpf.JumpNotEqual,
			Val:      call.number,
			SkipTrue: skip,
		})
		for _, c := range call.conditions {
			skip -= 3
			out = append(
				out,
				load(offArguments+8*c.argument),
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.value, SkipTrue: skip},
			)
		}
		out = append(out, allow)
	}
	// The C library falls back to clone only if clone3 does not exist.
	return append(
		out,
		load(offNumber),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	)
}

// filterSystemCalls applies the filter to all threads of this process.
func filterSystemCalls() error {
	raw, err := bpf.Assemble(filter())
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{
			Code: r.Op,
			Jt:   r.Jt,
			Jf:   r.Jf,
			K:    r.K,
		}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	thread, _, errno := unix.Syscall(
		unix.SYS_SECCOMP,
		unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)),
	)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d already has a filter", thread)
	}
	return nil
}
