// Package child starts this program again, as a child process that runs code
// or reads bytes of strangers, and keeps the child within limits of memory,
// time and files.
//
// The parent calls Start with a role, which is the child's one argument, and
// speaks to the child over its standard input and output. The child has no
// environment, no other open file, and dies with its parent: on Linux the
// kernel kills it, elsewhere it ends when its standard input does.
//
// A child asks Is for its role before anything else, and calls Limits.Apply
// before it reads what it has to work on. From then on a Linux kernel keeps it
// from opening files, from the network, from other processes and programs, as
// far as the kernel offers that: no new privileges; Landlock with nothing
// allowed, for files from Linux 5.13 on, for TCP from 6.7, for signals and
// abstract sockets from 6.12; and a seccomp filter that allows what the Go
// runtime needs and refuses the rest. The filter covers what Landlock leaves
// out, such as UDP, file modes and the list of the kernel's less known calls.
// Other systems have limits of time and memory only.
package child
