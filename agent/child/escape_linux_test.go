package child

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets is what a confined child tries to access.
type targets struct {
	Parent   int    // process id
	Folder   string // a folder with a file and master.key
	Secret   string // the content of master.key
	Socket   string // path of a listening socket
	Abstract string // name of a listening socket
	Port     int    // port of a TCP and of a UDP socket on 127.0.0.1
}

func (p targets) file(name string) string { return filepath.Join(p.Folder, name) }
func (p targets) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.Parent), name)
}

// escape is one attempt. It was prevented if its error says that the operation is not
// permitted.
type escape struct {
	name     string
	landlock int // the version of Landlock's ABI that prevents it without seccomp; 0: none
	try      func(targets) error
}

// prevented reports whether the kernel prevented an attempt.
func prevented(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS)
}

// nowhere is a path that exists on no machine, since nothing is below a device.
const nowhere = "/dev/null/nowhere"

func call(number uintptr, arguments ...uintptr) error {
	var a [6]uintptr
	copy(a[:], arguments)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func pointer(text string) uintptr {
	bytes, err := unix.BytePtrFromString(text)
	if err != nil {
		panic(err)
	}
	pinned = append(pinned, bytes)
	return uintptr(unsafe.Pointer(bytes))
}

var pinned []*byte

var escapes = concat(reads, writes, programs, sockets, processes, kernelCalls)

func concat(lists ...[]escape) (out []escape) {
	for _, list := range lists {
		out = append(out, list...)
	}
	return out
}

func read(name string) error {
	_, err := os.ReadFile(name)
	return err
}

func list(name string) error {
	_, err := os.ReadDir(name)
	return err
}

var reads = []escape{
	{"read /etc/passwd", 1, func(targets) error { return read("/etc/passwd") }},
	{"read a file of the data folder", 1, func(p targets) error { return read(p.file("agent.db")) }},
	{"read master.key", 1, func(p targets) error { return read(p.file("master.key")) }},
	{"list the data folder", 1, func(p targets) error { return list(p.Folder) }},
	{"list /", 1, func(targets) error { return list("/") }},
	{"list /proc", 1, func(targets) error { return list("/proc") }},
	{"read its own environment", 1, func(targets) error { return read("/proc/self/environ") }},
	{"read the parent's environment", 1, func(p targets) error { return read(p.proc("environ")) }},
	{"open the parent's memory", 1, func(p targets) error { return open(p.proc("mem"), unix.O_RDWR) }},
	{"list the parent's files", 1, func(p targets) error { return list(p.proc("fd")) }},
	{"read through the parent's root", 1, func(p targets) error { return read(p.proc("root/etc/passwd")) }},
	{"reopen its own program", 1, func(targets) error { return open("/proc/self/exe", unix.O_RDONLY) }},
	{"reopen its standard input", 0, func(targets) error { return open("/proc/self/fd/0", unix.O_RDWR) }},
	{"stat master.key", 0, func(p targets) error {
		_, err := os.Stat(p.file("master.key"))
		return err
	}},
	{"read through a symbolic link", 1, func(p targets) error { return read(p.file("link")) }},
	{"open /dev/mem", 0, func(targets) error { return open("/dev/mem", unix.O_RDWR) }},
	{"open /dev/null", 1, func(targets) error { return open("/dev/null", unix.O_RDWR) }},
	{"openat2", 0, func(targets) error { return call(unix.SYS_OPENAT2, 0, pointer("/etc"), 0, 0) }},
	{"open by handle", 0, func(targets) error { return call(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) }},
	{"name to handle", 0, func(targets) error { return call(unix.SYS_NAME_TO_HANDLE_AT, 0, 0, 0, 0, 0) }},
	{"read an inherited file", 1, readInherited},
	{"watch a folder", 0, func(targets) error { return call(unix.SYS_INOTIFY_INIT1, 0) }},
	{"watch a file system", 0, func(targets) error { return call(unix.SYS_FANOTIFY_INIT, 0, 0) }},
}

func open(name string, flags int) error {
	fd, err := unix.Open(name, flags, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// readInherited searches the open files for master.key.
func readInherited(p targets) error {
	for fd := 3; fd < 256; fd++ {
		content := make([]byte, len(p.Secret))
		if n, err := unix.Pread(fd, content, 0); err == nil && string(content[:n]) == p.Secret {
			return nil
		}
	}
	return unix.EPERM
}

var writes = []escape{
	{
		"create a file in the temporary folder",
		1,
		func(targets) error { return os.WriteFile(filepath.Join(os.TempDir(), "satchel-escape"), nil, 0o600) },
	},
	{"create a file in the data folder", 1, func(p targets) error { return os.WriteFile(p.file("new"), nil, 0o600) }},
	{"overwrite a file", 1, func(p targets) error { return os.WriteFile(p.file("agent.db"), nil, 0o600) }},
	{"truncate a file", 3, func(p targets) error { return os.Truncate(p.file("agent.db"), 0) }},
	{"delete a file", 1, func(p targets) error { return os.Remove(p.file("spare")) }},
	{"rename a file", 1, func(p targets) error { return os.Rename(p.file("agent.db"), p.file("other.db")) }},
	{"link a file", 1, func(p targets) error { return os.Link(p.file("agent.db"), p.file("second.db")) }},
	{"make a symbolic link", 1, func(p targets) error { return os.Symlink("/etc/passwd", p.file("made")) }},
	{"make a folder", 1, func(p targets) error { return os.Mkdir(p.file("folder"), 0o700) }},
	{"make a pipe", 1, func(p targets) error { return unix.Mkfifo(p.file("fifo"), 0o600) }},
	{"change a mode", 0, func(p targets) error { return os.Chmod(p.file("master.key"), 0o644) }},
	{"change an owner", 0, func(p targets) error { return os.Chown(p.file("master.key"), -1, -1) }},
	{"change times", 0, func(p targets) error { return unix.Utimes(p.file("agent.db"), make([]unix.Timeval, 2)) }},
	{
		"set an attribute",
		0,
		func(p targets) error { return unix.Setxattr(p.file("agent.db"), "user.x", []byte("x"), 0) },
	},
	{"create a file in memory", 0, func(targets) error {
		_, err := unix.MemfdCreate("x", 0)
		return err
	}},
	{"change folder", 0, func(p targets) error { return unix.Chdir(p.Folder) }},
	{"lock a file", 0, func(targets) error { return unix.Flock(0, unix.LOCK_SH|unix.LOCK_NB) }},
}

var programs = []escape{
	{"run /bin/sh", 0, func(targets) error {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit"}, &syscall.ProcAttr{})
		if err == nil {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	}},
	{"execve", 0, func(targets) error { return unix.Exec(nowhere+"/program", nil, nil) }},
	{"execveat of an open file", 0, func(targets) error {
		return call(unix.SYS_EXECVEAT, ^uintptr(0), pointer(""), 0, 0, unix.AT_EMPTY_PATH)
	}},
	{"fork", 0, func(targets) error { return fork(uintptr(syscall.SIGCHLD)) }},
	{
		"fork into namespaces",
		0,
		func(targets) error { return fork(uintptr(syscall.SIGCHLD) | unix.CLONE_NEWUSER | unix.CLONE_NEWNET) },
	},
	{"clone3", 0, func(targets) error { return call(unix.SYS_CLONE3, 0, 0) }},
	{"map memory that can be executed", 0, func(targets) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
		return err
	}},
	{"make memory executable", 0, func(targets) error {
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return nil
		}
		return unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC)
	}},
}

// fork creates a process that exits immediately.
func fork(flags uintptr) error {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return errno
	case pid == 0:
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, _ = syscall.Wait4(int(pid), nil, 0, nil)
	return nil
}

var loopback = [4]byte{127, 0, 0, 1}

// socket creates a socket and passes it to use.
func socket(domain, kind int, use func(fd int) error) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return use(fd)
}

func anySocket(domain, kind int) func(targets) error {
	return func(targets) error { return socket(domain, kind, func(int) error { return nil }) }
}

var sockets = []escape{
	{"connect by TCP", 4, func(p targets) error {
		return socket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrInet4{Port: p.Port, Addr: loopback})
		})
	}},
	{"connect to cloud metadata", 4, func(targets) error {
		return socket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrInet4{Port: 80, Addr: [4]byte{169, 254, 169, 254}})
		})
	}},
	{"connect by TCP over IPv6", 0, func(p targets) error {
		return socket(unix.AF_INET6, unix.SOCK_STREAM, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrInet6{Port: p.Port, Addr: [16]byte{10: 255, 11: 255, 12: 127, 15: 1}})
		})
	}},
	{"send by UDP", 10, func(p targets) error {
		return socket(unix.AF_INET, unix.SOCK_DGRAM, func(fd int) error {
			return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: p.Port, Addr: loopback})
		})
	}},
	{"connect to a socket's path", 9, func(p targets) error {
		return socket(unix.AF_UNIX, unix.SOCK_STREAM, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrUnix{Name: p.Socket})
		})
	}},
	{"connect to an abstract socket", 6, func(p targets) error {
		return socket(unix.AF_UNIX, unix.SOCK_STREAM, func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrUnix{Name: p.Abstract})
		})
	}},
	{"listen by TCP", 4, func(targets) error {
		return socket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback})
		})
	}},
	{"listen by UDP", 10, func(targets) error {
		return socket(unix.AF_INET, unix.SOCK_DGRAM, func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback})
		})
	}},
	{"listen at a path", 1, func(p targets) error {
		return socket(unix.AF_UNIX, unix.SOCK_STREAM, func(fd int) error {
			return unix.Bind(fd, &unix.SockaddrUnix{Name: p.file("listen")})
		})
	}},
	{"a pair of sockets", 0, func(targets) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	}},
	{"a netlink socket", 0, anySocket(unix.AF_NETLINK, unix.SOCK_RAW)},
	{"a packet socket", 0, anySocket(unix.AF_PACKET, unix.SOCK_RAW)},
	{"a raw socket", 0, anySocket(unix.AF_INET, unix.SOCK_RAW)},
	{"a vsock socket", 0, anySocket(unix.AF_VSOCK, unix.SOCK_STREAM)},
	{"a socket of the kernel's cryptography", 0, anySocket(unix.AF_ALG, unix.SOCK_SEQPACKET)},
	{"a pipe", 0, func(targets) error { return unix.Pipe2(make([]int, 2), 0) }},
}

var processes = []escape{
	{
		"trace the parent",
		1,
		func(p targets) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(p.Parent), 0, 0) },
	},
	{"signal the parent", 6, func(p targets) error { return unix.Kill(p.Parent, 0) }},
	{"signal a thread of the parent", 6, func(p targets) error { return unix.Tgkill(p.Parent, p.Parent, 0) }},
	{"signal any thread", 6, func(p targets) error { return call(unix.SYS_TKILL, uintptr(p.Parent), 0) }},
	{"signal its group", 0, func(targets) error { return unix.Kill(0, 0) }},
	{
		"queue a signal to the parent",
		0,
		func(p targets) error { return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(p.Parent), 0, 0) },
	},
	{"open a pidfd of the parent", 0, func(p targets) error {
		_, err := unix.PidfdOpen(p.Parent, 0)
		return err
	}},
	{"copy a descriptor of the parent", 0, func(targets) error { return call(unix.SYS_PIDFD_GETFD, 0, 0, 0) }},
	{"read the parent's memory", 0, func(p targets) error {
		_, err := unix.ProcessVMReadv(p.Parent, nil, nil, 0)
		return err
	}},
	{"write the parent's memory", 0, func(p targets) error {
		_, err := unix.ProcessVMWritev(p.Parent, nil, nil, 0)
		return err
	}},
	{
		"compare with the parent",
		0,
		func(p targets) error { return call(unix.SYS_KCMP, uintptr(p.Parent), uintptr(p.Parent), 0, 0, 0) },
	},
	{
		"limits of the parent",
		0,
		func(p targets) error { return unix.Prlimit(p.Parent, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)) },
	},
	{"its own limits", 0, func(targets) error { return unix.Prlimit(0, unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil) }},
	{"priority of the parent", 0, func(p targets) error { return unix.Setpriority(unix.PRIO_PROCESS, p.Parent, 0) }},
	{"priority of the user", 0, func(targets) error { return unix.Setpriority(unix.PRIO_USER, 1<<30, 0) }},
	{"processors of the parent", 0, func(p targets) error { return unix.SchedSetaffinity(p.Parent, &unix.CPUSet{}) }},
	{"signals from a file", 0, func(p targets) error {
		_, err := unix.FcntlInt(0, unix.F_SETOWN, p.Parent)
		return err
	}},
	{"a copy of a file", 0, func(targets) error {
		_, err := unix.Dup(0)
		return err
	}},
	{
		"a robust list of the parent",
		0,
		func(p targets) error { return call(unix.SYS_GET_ROBUST_LIST, uintptr(p.Parent), 0, 0) },
	},
}

var kernelCalls = []escape{
	{"mount", 0, func(p targets) error { return unix.Mount("x", nowhere, "tmpfs", 0, "") }},
	{"mount with fsopen", 0, func(targets) error { return call(unix.SYS_FSOPEN, 0, 0) }},
	{"unmount", 0, func(targets) error { return unix.Unmount(nowhere, 0) }},
	{"another root", 0, func(targets) error { return unix.Chroot(nowhere) }},
	{"pivot the root", 0, func(targets) error { return unix.PivotRoot(nowhere, nowhere) }},
	{"new namespaces", 0, func(targets) error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
	{"another namespace", 0, func(targets) error { return unix.Setns(0, 0) }},
	{"bpf", 0, func(targets) error { return call(unix.SYS_BPF, 0, 0, 0) }},
	{"performance counters", 0, func(targets) error { return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0) }},
	{"io_uring", 0, func(targets) error { return call(unix.SYS_IO_URING_SETUP, 1, 0) }},
	{"faults in user space", 0, func(targets) error { return call(unix.SYS_USERFAULTFD, 0x800000) }},
	{"the kernel's keys", 0, func(targets) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return err
	}},
	{"add a key", 0, func(targets) error { return call(unix.SYS_ADD_KEY, 0, 0, 0, 0, 0) }},
	{"ask for a key", 0, func(targets) error { return call(unix.SYS_REQUEST_KEY, 0, 0, 0, 0) }},
	{"load a module", 0, func(targets) error { return call(unix.SYS_FINIT_MODULE, ^uintptr(0), 0, 0) }},
	{"load a kernel", 0, func(targets) error { return call(unix.SYS_KEXEC_LOAD, 0, 0, 0, ^uintptr(0)) }},
	{"swap", 0, func(targets) error { return call(unix.SYS_SWAPON, pointer(nowhere), 0) }},
	{"the clock", 0, func(targets) error { return call(unix.SYS_CLOCK_SETTIME, ^uintptr(0), 0) }},
	{"the kernel's log", 0, func(targets) error { return call(unix.SYS_SYSLOG, 10, 0, 0) }},
	{"another user", 0, func(targets) error { return call(unix.SYS_SETUID, uintptr(os.Getuid())) }},
	{"capabilities", 0, func(targets) error { return call(unix.SYS_CAPSET, 0, 0) }},
	{"set itself dumpable", 0, func(targets) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }},
	{"another personality", 0, func(targets) error { return call(unix.SYS_PERSONALITY, 0xffffffff) }},
	{"another filter", 0, func(targets) error { return call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0) }},
	{"shared memory", 0, func(targets) error {
		_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 0, 0)
		return err
	}},
	{"a queue of messages", 0, func(targets) error { return call(unix.SYS_MSGGET, 1, 0) }},
	{"semaphores", 0, func(targets) error { return call(unix.SYS_SEMGET, 1, 1, 0) }},
	{"input of the terminal", 0, func(targets) error { return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, pointer("x")) }},
	{"the machine's name", 0, func(targets) error { return call(unix.SYS_SETHOSTNAME, 0, ^uintptr(0)) }},
}

// attempt tries every escape and returns the names of those that the kernel did
// not prevent, with what happened.
func attempt(p targets) (escaped map[string]string) {
	escaped = map[string]string{}
	for _, e := range escapes {
		if err := e.try(p); err == nil {
			escaped[e.name] = "done"
		} else if !prevented(err) {
			escaped[e.name] = strings.TrimSpace(err.Error())
		}
	}
	return escaped
}
