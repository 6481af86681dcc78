package bitcode

import "golang.org/x/sys/cpu"

// native reports whether sums512 can be used. Tests change it.
var native = cpu.X86.HasAVX2
