package gemm

// Every kernel's tile fits a whole number of times into tallest rows and widest
// columns, so buffers padded to these serve all of them.
const (
	tallest = 12
	widest  = 32
)

// Kernel is one way to multiply a tile: rows of the left matrix by one panel
// of columns.
type Kernel struct {
	name    string
	rows    int
	columns int
	tile    func(depth int, a *float32, lda int, b *float32, c *float32, ldc int)
}

// Kernels lists the kernels that this CPU can run, the fastest first. The last
// one is plain Go and runs everywhere.
func Kernels() []*Kernel {
	return append(native(), portable)
}

// Name says which instructions the kernel needs: "avx512", "avx2" or "go".
func (k *Kernel) Name() string { return k.name }

// PadRows rounds a number of rows up to what MulAdd reads and writes.
func PadRows(rows int) int { return (rows + tallest - 1) / tallest * tallest }

// PadColumns rounds a number of columns up to what MulAdd may write: the last
// panel of a matrix has columns of zeros past the matrix's own.
func PadColumns(columns int) int { return (columns + widest - 1) / widest * widest }
