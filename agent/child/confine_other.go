//go:build !linux

package child

// Offered returns nothing: only Linux can confine a running process.
func Offered() Confinement { return Confinement{} }

func (c Confinement) apply() error { return nil }

func confineAndReport() (Confinement, error) { return Confinement{}, confine() }
