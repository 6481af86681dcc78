//go:build !linux

package child

// TreeMemory returns 0: it is unknown on this system.
func (p *Process) TreeMemory() uint64 { return 0 }
