package encoder

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/internal/modelfile"
)

// prose is plain English of about 4.3 characters per token, as in manuals and
// articles.
const prose = `An agent keeps everything it knows in one file: its sources, the contacts it has met, each conversation, and the
runs of every workflow. When somebody uploads a manual, the text is cut into chunks of about a thousand characters, and
each chunk is given a vector, so that a question can be answered even when it shares no word with the text. The work is
done in the background and the progress is shown; until it has finished, search by keyword already answers. A refund is
paid within thirty days if the goods come back unused, and the customer only has to state the number of the order.
Deliveries to the islands take two days longer than those to the mainland, because the ferry does not sail on Sundays.
If the printer shows a red light, open the cover, remove the sheet that is stuck, and close the cover again until it
clicks. Passwords have at least twelve characters; whoever forgets one receives a link that works for a single hour. `

// chunk returns n characters of prose.
func chunk(n int) string {
	text := strings.Join(strings.Fields(prose), " ") + " "
	text = strings.Repeat(text, n/len(text)+1)[:n]
	if utf8.RuneCountInString(text) != n {
		panic("the prose is not ASCII")
	}
	return text
}

// flops returns the floating-point operations for one embedding of the text: two for
// each multiply-add of the dense layers and of attention.
func flops(m *Model, text string) float64 {
	var total float64
	for _, part := range windows(m.Tokens(text)) {
		n := float64(len(part))
		total += n * (inputWidth*width + width*width) // residual and output of attention in layer 0 and 1
		total += n * (inputWidth*3*inputWidth + inputWidth*width + width*3*width)
		total += n * 4 * width * innerWidth
		total += 2 * n * n * (inputWidth + width)
		total += width * Dims
	}
	return 2 * total
}

func BenchmarkEmbed(b *testing.B) {
	for _, kernel := range gemm.Kernels() {
		m := load(b, kernel)
		for _, size := range []int{20, 200, 1000, 4000} {
			b.Run(fmt.Sprintf("%s/%d", kernel.Name(), size), func(b *testing.B) {
				text := chunk(size)
				for b.Loop() {
					if _, err := m.Embed(context.Background(), text); err != nil {
						b.Fatal(err)
					}
				}
				second := float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(second, "texts/s")
				b.ReportMetric(second*flops(m, text)/1e9, "GFLOP/s")
			})
		}
		b.Run(kernel.Name()+"/limit", func(b *testing.B) { benchmarkLimit(b, kernel) })
	}
}

// benchmarkLimit multiplies matrices that fit into the first-level cache.
func benchmarkLimit(b *testing.B, kernel *gemm.Kernel) {
	const rows, depth, columns = 24, 64, 32
	right := gemm.NewMatrix(kernel, depth, columns)
	left := gemm.Rows{Data: make([]float32, rows*depth), Stride: depth}
	result := gemm.Rows{Data: make([]float32, rows*columns), Stride: columns}
	for b.Loop() {
		right.MulAdd(result, left, rows)
	}
	b.ReportMetric(2*rows*depth*columns*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkQuery(b *testing.B) {
	m := load(b, gemm.Kernels()[0])
	for b.Loop() {
		if _, err := m.Embed(context.Background(), "How do I reset my password?"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokens(b *testing.B) {
	m := load(b, gemm.Kernels()[0])
	for _, size := range []int{30, 1000, 64000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			text := chunk(size)
			b.SetBytes(int64(size))
			for b.Loop() {
				m.Tokens(text)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b, gemm.Kernels()[0])
	}
}

// load decodes the embedded model for one kernel.
func load(t testing.TB, kernel *gemm.Kernel) *Model {
	t.Helper()
	file, err := modelfile.Decode(content())
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(file, kernel)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
