package gemm

// The tiles of all kernels divide tallest rows and widest columns, so buffers
// padded to these fit all of them.
const (
	tallest = 12
	widest  = 32
)

// Kernel multiplies a tile: rows of the left matrix by one panel of columns.
type Kernel struct {
	name    string
	rows    int
	columns int
	tile    func(depth int, a *float32, lda int, b *float32, c *float32, ldc int)
}

// Kernels returns the kernels that this CPU can run, the fastest first. The
// last one is plain Go and runs everywhere.
func Kernels() []*Kernel {
	return append(native(), portable)
}

// Name returns the instruction set of the kernel: "avx512", "avx2", "neon" or "go".
func (k *Kernel) Name() string { return k.name }

// PadRows rounds a number of rows up to what MulAdd reads and writes.
func PadRows(rows int) int { return (rows + tallest - 1) / tallest * tallest }

// PadColumns rounds a number of columns up to what MulAdd may write: the last
// panel of a matrix is padded with columns of zeros.
func PadColumns(columns int) int { return (columns + widest - 1) / widest * widest }
