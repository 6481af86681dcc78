package gemm

// depthBlock is the number of rows of a panel per pass: a block of the widest
// panel, 32 KB, stays in the L1 cache while it is multiplied with all rows of
// the left matrix.
const depthBlock = 256

// Matrix is the right side of a product, packed into panels for one kernel. A
// panel has a few neighbouring columns, row by row.
type Matrix struct {
	kernel  *Kernel
	depth   int
	columns int
	panels  []float32
}

// Rows is a row-major matrix inside a larger slice: row i begins at
// Data[i*Stride].
type Rows struct {
	Data   []float32
	Stride int
}

// At returns the submatrix of r from a row and column on.
func (r Rows) At(row, column int) Rows {
	return Rows{r.Data[row*r.Stride+column:], r.Stride}
}

// NewMatrix returns a matrix of zeros with depth rows, ready to be packed.
func NewMatrix(kernel *Kernel, depth, columns int) *Matrix {
	m := &Matrix{kernel: kernel}
	m.Reset(depth, columns)
	return m
}

// Reset gives the matrix a new size and all zeros. It only allocates if the
// matrix has never been that large.
func (m *Matrix) Reset(depth, columns int) {
	wide := m.kernel.columns
	size := (columns + wide - 1) / wide * wide * depth
	m.depth, m.columns = depth, columns
	if cap(m.panels) < size {
		m.panels = make([]float32, size)
		return
	}
	m.panels = m.panels[:size]
	clear(m.panels)
}

// Bytes returns the memory used by the packed values.
func (m *Matrix) Bytes() int { return 4 * cap(m.panels) }

// SetColumn packs one column of depth values.
func (m *Matrix) SetColumn(column int, values []float32) {
	wide := m.kernel.columns
	panel := m.panels[column/wide*wide*m.depth:][:wide*m.depth]
	at := column % wide
	for _, v := range values[:m.depth] {
		panel[at] = v
		at += wide
	}
}

// SetRow packs one row.
func (m *Matrix) SetRow(row int, values []float32) {
	wide := m.kernel.columns
	values = values[:m.columns]
	for at := row * wide; len(values) > 0; at += wide * m.depth {
		n := copy(m.panels[at:at+wide], values)
		values = values[n:]
	}
}

// MulAdd adds a·m to c, for a number of rows rounded up with PadRows: both
// must have those rows, and c must have PadColumns columns within its stride.
// The padding rows are read and overwritten, but do not affect the others. It
// panics if a or c is too short.
func (m *Matrix) MulAdd(c, a Rows, rows int) {
	rows = PadRows(rows)
	if rows == 0 || m.columns == 0 {
		return
	}
	tall, wide := m.kernel.rows, m.kernel.columns
	width := (m.columns + wide - 1) / wide * wide
	_ = a.Data[(rows-1)*a.Stride+m.depth-1]
	_ = c.Data[(rows-1)*c.Stride+width-1]
	for k := 0; k < m.depth; k += depthBlock {
		depth := min(depthBlock, m.depth-k)
		for j := 0; j < width; j += wide {
			panel := &m.panels[j*m.depth+k*wide]
			for i := 0; i < rows; i += tall {
				m.kernel.tile(depth, &a.Data[i*a.Stride+k], a.Stride, panel, &c.Data[i*c.Stride+j], c.Stride)
			}
		}
	}
}
