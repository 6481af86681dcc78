//go:build unix

package child

import "syscall"

// tree is a process group, by the id of its first process.
type tree int

func newTree(pid int) (tree, error) { return tree(pid), nil }

func (t tree) terminate() {
	_ = syscall.Kill(-int(t), syscall.SIGTERM)
}
func (t tree) kill() {
	_ = syscall.Kill(-int(t), syscall.SIGKILL)
}
func (t tree) close() {}
