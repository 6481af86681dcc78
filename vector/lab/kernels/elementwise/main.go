// Command elementwise writes the functions of vector/encoder/internal/nn that
// work on single values, softmax and GELU, as Go assembly.
//
// Run it with `go generate ./vector/encoder/internal/nn`.
package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// width is a vector size.
type width struct {
	suffix string
	needs  string
	bytes  int
	vector func() reg.VecVirtual
}

// unroll is how many vectors are computed side by side.
const unroll = 2

// Constants, each repeated to fill a vector of 64 bytes. Those of exp are of
// Cephes' expf, those of erf of Eigen's generic_fast_erf_float; elementwise.go
// explains them.
var (
	lowest, log2e, round, ln2Hi, ln2Low, one operand.Mem
	half, root, four, minusFour              operand.Mem
	expPolynomial, erfAbove, erfBelow        []operand.Mem
	bias                                     operand.Mem
)

func main() {
	ConstraintExpr("amd64")
	constants()
	for _, w := range []width{{"8", "AVX2 and FMA", 32, YMM}, {"16", "AVX-512F", 64, ZMM}} {
		w.softmax()
		w.gelu()
	}
	Generate()
}

func constants() {
	table := GLOBL("constants", attr.RODATA|attr.NOPTR)
	at := 0
	add := func(bits uint32) operand.Mem {
		m := table.Offset(at)
		for range 16 {
			DATA(at, operand.U32(bits))
			at += 4
		}
		return m
	}
	list := func(values ...float32) (all []operand.Mem) {
		for _, v := range values {
			all = append(all, add(math.Float32bits(v)))
		}
		return all
	}
	single := list(-87, 1.44269504088896341, 3<<22, 0.693359375, -2.12194440e-4, 1, 0.5, 0.70710678118654752, 4, -4)
	for i, m := range []*operand.Mem{&lowest, &log2e, &round, &ln2Hi, &ln2Low, &one, &half, &root, &four, &minusFour} {
		*m = single[i]
	}
	bias = add(127)
	expPolynomial = list(
		1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
	)
	erfAbove = list(
		-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
	)
	erfBelow = list(
		-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
		-1.42647390514189e-02,
	)
}

// each runs code for every group of vectors of values.
func (w width) each(label string, values, n reg.GPVirtual, body func(at []operand.Mem)) {
	at, remaining := GP64(), GP64()
	MOVQ(values, at)
	MOVQ(n, remaining)
	Label(label)
	var mems []operand.Mem
	for i := range unroll {
		mems = append(mems, operand.Mem{Base: at, Disp: i * w.bytes})
	}
	body(mems)
	ADDQ(operand.I32(unroll*w.bytes), at)
	SUBQ(operand.I32(unroll*w.bytes/4), remaining)
	JNZ(operand.LabelRef(label))
}

// vectors returns a register for each vector of a group.
func (w width) vectors() (list []reg.VecVirtual) {
	for range unroll {
		list = append(list, w.vector())
	}
	return list
}

// fold combines the values of a vector into its first.
func (w width) fold(v reg.VecVirtual, combine func(...operand.Op)) reg.Register {
	low := v.AsY()
	if w.bytes == 64 {
		high := YMM()
		VEXTRACTF64X4(operand.U8(1), v, high)
		combine(high, low, low)
	}
	x, high := v.AsX(), XMM()
	VEXTRACTF128(operand.U8(1), low, high)
	combine(high, x, x)
	VPERMILPS(operand.U8(0x4e), x, high)
	combine(high, x, x)
	VPERMILPS(operand.U8(0xb1), x, high)
	combine(high, x, x)
	return x
}

func (w width) softmax() {
	TEXT("softmax"+w.suffix, NOSPLIT, "func(values *float32, n int, scale float32)")
	Doc(
		fmt.Sprintf(
			"softmax%s multiplies n values by scale, of which the result is the softmax. n is a multiple of",
			w.suffix,
		),
		fmt.Sprintf("%d and not zero. It needs %s.", unroll*w.bytes/4, w.needs),
	)
	Pragma("noescape")
	values := Load(Param("values"), GP64()).(reg.GPVirtual)
	n := Load(Param("n"), GP64()).(reg.GPVirtual)

	most := w.vectors()
	for _, m := range most {
		VMOVUPS(operand.Mem{Base: values}, m)
	}
	w.each("largest", values, n, func(at []operand.Mem) {
		for i, m := range most {
			VMAXPS(at[i], m, m)
		}
	})
	VMAXPS(most[1], most[0], most[0])
	largest, scale := w.vector(), w.vector()
	VBROADCASTSS(w.fold(most[0], VMAXPS), largest)
	address, err := Param("scale").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(address.Addr, scale)

	sums := w.vectors()
	for _, s := range sums {
		w.zero(s)
	}
	w.each("exponentials", values, n, func(at []operand.Mem) {
		x := w.vectors()
		for i := range x {
			VMOVUPS(at[i], x[i])
			VSUBPS(largest, x[i], x[i])
			VMULPS(scale, x[i], x[i])
		}
		for i, e := range w.exp(x) {
			VMOVUPS(e, at[i])
			VADDPS(e, sums[i], sums[i])
		}
	})
	VADDPS(sums[1], sums[0], sums[0])
	w.fold(sums[0], VADDPS)
	inverse := w.vector()
	ones := XMM()
	VMOVSS(one, ones)
	VDIVSS(sums[0].AsX(), ones, ones)
	VBROADCASTSS(ones, inverse)
	w.each("weights", values, n, func(at []operand.Mem) {
		for _, m := range at {
			v := w.vector()
			VMULPS(m, inverse, v)
			VMOVUPS(v, m)
		}
	})
	VZEROUPPER()
	RET()
}

func (w width) zero(v reg.VecVirtual) {
	if w.bytes == 64 {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// exp returns e to the x for x <= 0. Below -87 it is e to the -87.
func (w width) exp(x []reg.VecVirtual) []reg.VecVirtual {
	n, p := w.vectors(), w.vectors()
	for i := range x {
		VMOVUPS(lowest, p[i])
		VMAXPS(x[i], p[i], x[i]) // in this order a NaN stays
		VMOVUPS(round, n[i])
		VFMADD231PS(log2e, x[i], n[i])
		VSUBPS(round, n[i], n[i])
		VFNMADD231PS(ln2Hi, n[i], x[i])
		VFNMADD231PS(ln2Low, n[i], x[i])
		VMOVUPS(expPolynomial[0], p[i])
	}
	for _, c := range expPolynomial[1:] {
		for i := range x {
			VFMADD213PS(c, x[i], p[i])
		}
	}
	for i := range x {
		square := w.vector()
		VMULPS(x[i], x[i], square)
		VFMADD213PS(x[i], square, p[i])
		VADDPS(one, p[i], p[i])
		VCVTPS2DQ(n[i], n[i])
		VPADDD(bias, n[i], n[i])
		VPSLLD(operand.U8(23), n[i], n[i])
		VMULPS(n[i], p[i], p[i])
	}
	return p
}

func (w width) gelu() {
	TEXT("gelu"+w.suffix, NOSPLIT, "func(values *float32, n int)")
	Doc(fmt.Sprintf(
		"gelu%s applies GELU to n values. n is a multiple of %d and not zero. It needs %s.",
		w.suffix, unroll*w.bytes/4, w.needs,
	))
	Pragma("noescape")
	values := Load(Param("values"), GP64()).(reg.GPVirtual)
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	w.each("values", values, n, func(at []operand.Mem) {
		halves, x, square, p, q := w.vectors(), w.vectors(), w.vectors(), w.vectors(), w.vectors()
		for i, m := range at {
			VMOVUPS(m, x[i])
			VMULPS(half, x[i], halves[i])
			VMULPS(root, x[i], x[i])
			VMOVUPS(four, p[i])
			VMINPS(x[i], p[i], x[i])
			VMOVUPS(minusFour, p[i])
			VMAXPS(x[i], p[i], x[i])
			VMULPS(x[i], x[i], square[i])
			VMOVUPS(erfAbove[0], p[i])
			VMOVUPS(erfBelow[0], q[i])
		}
		for k := 1; k < len(erfAbove); k++ {
			for i := range at {
				VFMADD213PS(erfAbove[k], square[i], p[i])
				if k < len(erfBelow) {
					VFMADD213PS(erfBelow[k], square[i], q[i])
				}
			}
		}
		for i, m := range at {
			VMULPS(x[i], p[i], p[i])
			VDIVPS(q[i], p[i], p[i])
			VFMADD213PS(halves[i], halves[i], p[i])
			VMOVUPS(p[i], m)
		}
	})
	VZEROUPPER()
	RET()
}
