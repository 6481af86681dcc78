package gemm

import "golang.org/x/sys/cpu"

// native returns the assembly kernels that the CPU and operating system
// support.
func native() []*Kernel {
	var list []*Kernel
	if cpu.X86.HasAVX512F {
		list = append(list, &Kernel{
			name:    "avx512",
			rows:    12,
			columns: 32,
			tile:    tile12x32,
		})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		list = append(list, &Kernel{
			name:    "avx2",
			rows:    6,
			columns: 16,
			tile:    tile6x16,
		})
	}
	return list
}
