// Command gemm writes the matrix multiplication micro-kernels of
// vector/encoder/internal/gemm for amd64 as Go assembly.
//
// Run it with `go generate ./vector/encoder/internal/gemm`.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile is one micro-kernel: rows of C by two vectors of columns, kept in
// registers over the whole depth.
type tile struct {
	name    string
	rows    int // a multiple of 3, see rowPointers
	bytes   int // of one vector register
	vector  func() reg.VecVirtual
	move    func(...operand.Op)
	spread  func(...operand.Op)
	fma     func(...operand.Op)
	add     func(...operand.Op)
	zero    func(...operand.Op)
	columns int
}

// unroll is the number of steps of the depth per iteration of the main loop.
const unroll = 4

func main() {
	ConstraintExpr("amd64")
	avx2 := tile{
		name:    "tile6x16",
		rows:    6,
		bytes:   32,
		columns: 16,
		vector:  YMM,
		move:    VMOVUPS,
		spread:  VBROADCASTSS,
		fma:     VFMADD231PS,
		add:     VADDPS,
		zero:    VXORPS,
	}
	avx512 := tile{
		name:    "tile12x32",
		rows:    12,
		bytes:   64,
		columns: 32,
		vector:  ZMM,
		move:    VMOVUPS,
		spread:  VBROADCASTSS,
		fma:     VFMADD231PS,
		add:     VADDPS,
		zero:    VPXORD,
	}
	avx2.generate("AVX2 and FMA")
	avx512.generate("AVX-512F")
	Generate()
}

func (t tile) generate(needs string) {
	TEXT(t.name, NOSPLIT, "func(depth int, a *float32, lda int, b *float32, c *float32, ldc int)")
	Doc(
		fmt.Sprintf(
			"%s adds the product of %d rows of a and one panel of b to %d×%d values of c.",
			t.name, t.rows, t.rows, t.columns,
		),
		"lda and ldc count floats. It needs "+needs+".",
	)
	Pragma("noescape")
	depth := Load(Param("depth"), GP64())
	a := Load(Param("a"), GP64())
	lda := Load(Param("lda"), GP64())
	b := Load(Param("b"), GP64())

	SHLQ(operand.Imm(2), lda)
	rows := t.rowPointers(a, lda)
	acc := make([][2]reg.VecVirtual, t.rows)
	for r := range acc {
		for v := range acc[r] {
			acc[r][v] = t.vector()
			t.zero(acc[r][v], acc[r][v], acc[r][v])
		}
	}
	t.loop("deep", unroll, depth, rows, lda, b, acc)
	t.loop("rest", 1, depth, rows, lda, b, acc)
	t.store(acc)
	if t.bytes > 16 {
		VZEROUPPER()
	}
	RET()
}

// rowPointers returns a pointer to every third row: x86 addressing reaches the
// two rows between as pointer+lda and pointer+2·lda.
func (t tile) rowPointers(first, stride reg.Register) []reg.GPVirtual {
	pointers := make([]reg.GPVirtual, t.rows/3)
	three := GP64()
	LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, three)
	for i := range pointers {
		pointers[i] = GP64()
		if i == 0 {
			MOVQ(first, pointers[0])
			continue
		}
		LEAQ(operand.Mem{Base: pointers[i-1], Index: three, Scale: 1}, pointers[i])
	}
	return pointers
}

// cell addresses a float of a row, offset bytes after its pointer.
func cell(pointers []reg.GPVirtual, stride reg.Register, row, offset int) operand.Mem {
	m := operand.Mem{Base: pointers[row/3], Disp: offset}
	if row%3 > 0 {
		m.Index, m.Scale = stride, uint8(row%3)
	}
	return m
}

// loop multiplies as many groups of steps as remain in the depth.
func (t tile) loop(
	label string,
	steps int,
	depth reg.Register,
	rows []reg.GPVirtual,
	lda, b reg.Register,
	acc [][2]reg.VecVirtual,
) {
	Label(label)
	CMPQ(depth, operand.I32(steps))
	JLT(operand.LabelRef(label + "_done"))
	for s := range steps {
		var panel [2]reg.VecVirtual
		for v := range panel {
			panel[v] = t.vector()
			t.move(operand.Mem{Base: b, Disp: (2*s + v) * t.bytes}, panel[v])
		}
		for r := range t.rows {
			value := t.vector()
			t.spread(cell(rows, lda, r, 4*s), value)
			t.fma(value, panel[0], acc[r][0])
			t.fma(value, panel[1], acc[r][1])
		}
	}
	for _, p := range rows {
		ADDQ(operand.I32(4*steps), p)
	}
	ADDQ(operand.I32(2*t.bytes*steps), b)
	SUBQ(operand.I32(steps), depth)
	JMP(operand.LabelRef(label))
	Label(label + "_done")
}

// store adds the registers to c.
func (t tile) store(acc [][2]reg.VecVirtual) {
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	SHLQ(operand.Imm(2), ldc)
	rows := t.rowPointers(c, ldc)
	for r := range acc {
		for v := range acc[r] {
			at := cell(rows, ldc, r, v*t.bytes)
			t.add(at, acc[r][v], acc[r][v])
			t.move(acc[r][v], at)
		}
	}
}
