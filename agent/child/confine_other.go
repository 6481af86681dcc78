//go:build !linux

package child

// SupportedConfinement returns nothing: only Linux can confine a running process.
func SupportedConfinement() Confinement { return Confinement{} }

func (c Confinement) apply() error { return nil }

func confineAndReport() (Confinement, error) { return Confinement{}, confine() }
