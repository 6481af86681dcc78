// Package child starts this program again as a child process that runs
// untrusted code or parses untrusted bytes, within limits of memory, time and
// files.
//
// The parent calls Start with a role, which is the child's only argument, and
// communicates with the child over its standard input and output. The child has
// no environment and no other open file, and dies with its parent: on Linux the
// kernel kills it, elsewhere it exits when its standard input ends.
//
// A child first asks Is for its role, and calls Limits.Apply before it reads
// its work. From then on a Linux kernel denies it opening files, the network,
// other processes and other programs, as far as the kernel supports it: no new
// privileges; Landlock with nothing allowed, for files from Linux 5.13, for TCP
// from 6.7, for signals and abstract sockets from 6.12; and a seccomp filter
// that allows what the Go runtime needs and denies the rest. The filter covers
// what Landlock does not, such as UDP, file modes and rarely used system calls.
// Other systems only have limits of memory and time.
package child
