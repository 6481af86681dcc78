// Command bitcode writes the comparison of store/search/bitcode for amd64 as Go
// assembly.
//
// Run it with `go generate ./store/search/bitcode`.
package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	planes   = 4  // of a query, a bit of each dimension
	vectors  = 2  // of 32 bytes that a code or a plane takes
	codeSize = 64 // bytes
)

// The bits of a byte are counted by looking up both of its halves in a table
// (Muła, Kurz and Lemire, "Faster Population Counts Using AVX2 Instructions", 2018).
// There is a table for each plane, with the counts multiplied by its weight: the sum of
// one code then fits into a byte for the first three planes, and for the last, whose
// weight is negative, into another.
func main() {
	ConstraintExpr("amd64")
	var tables [planes]operand.Mem
	for p := range tables {
		tables[p] = constant([]string{"count1", "count2", "count4", "count8"}[p], func(i int) uint8 {
			return uint8(bits.OnesCount8(uint8(i%16)) << p)
		})
	}
	low := constant("low", func(int) uint8 { return 15 })

	TEXT("sums512", NOSPLIT, "func(planes *[32]uint64, signs *uint64, out *int32, n int)")
	Doc("sums512 is Sums for n codes of 512 dimensions. n is not zero. It needs AVX2.")
	Pragma("noescape")
	query := Load(Param("planes"), GP64())
	signs := Load(Param("signs"), GP64())
	out := Load(Param("out"), GP64())
	n := Load(Param("n"), GP64())

	var counts [planes]reg.VecVirtual
	for p := range counts {
		counts[p] = YMM()
		VMOVDQU(tables[p], counts[p])
	}
	mask, zero := YMM(), YMM()
	VMOVDQU(low, mask)
	VPXOR(zero, zero, zero)

	Label("next")
	var code [vectors]reg.VecVirtual
	for v := range code {
		code[v] = YMM()
		VMOVDQU(operand.Mem{Base: signs, Disp: 32 * v}, code[v])
	}
	positive, negative := YMM(), YMM()
	VPXOR(positive, positive, positive)
	VPXOR(negative, negative, negative)
	for p := range planes {
		sum := positive
		if p == planes-1 {
			sum = negative
		}
		for v := range code {
			common, upper := YMM(), YMM()
			VPAND(operand.Mem{Base: query, Disp: codeSize*p + 32*v}, code[v], common)
			VPSRLW(operand.Imm(4), common, upper)
			VPAND(mask, common, common)
			VPAND(mask, upper, upper)
			VPSHUFB(common, counts[p], common)
			VPSHUFB(upper, counts[p], upper)
			VPADDB(common, sum, sum)
			VPADDB(upper, sum, sum)
		}
	}
	VPSADBW(zero, positive, positive)
	VPSADBW(zero, negative, negative)
	VPSUBQ(negative, positive, positive)
	half := XMM()
	VEXTRACTI128(operand.Imm(1), positive, half)
	VPADDD(half, positive.AsX(), half)
	rest := XMM()
	VPSRLDQ(operand.Imm(8), half, rest)
	VPADDD(rest, half, half)
	VMOVD(half, operand.Mem{Base: out})

	ADDQ(operand.Imm(codeSize), signs)
	ADDQ(operand.Imm(4), out)
	DECQ(n)
	JNZ(operand.LabelRef("next"))
	VZEROUPPER()
	RET()
	Generate()
}

// constant is a vector of 32 bytes.
func constant(name string, value func(i int) uint8) operand.Mem {
	table := GLOBL(name, attr.RODATA|attr.NOPTR)
	for i := range 32 {
		DATA(i, operand.U8(value(i)))
	}
	return table
}
