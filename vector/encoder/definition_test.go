package encoder

import (
	"math"
	"testing"

	"satchel/vector/internal/modelfile"
)

// TestNetworkMatchesItsDefinition compares the packed, blocked network with a
// straightforward float64 implementation of the published graph with the same
// weights.
func TestNetworkMatchesItsDefinition(t *testing.T) {
	m := shared(t)
	file, err := modelfile.Decode(content())
	if err != nil {
		t.Fatal(err)
	}
	d := definition{t, file}
	for _, text := range []string{"", "hello", "How do I reset my password?", chunk(120)} {
		checkClose(t, text, embed(t, m, text), d.embed(m.Tokens(text)))
	}
}

type definition struct {
	t    *testing.T
	file *modelfile.File
}

func (d definition) embed(ids []int32) []float32 {
	x := make([][]float64, len(ids))
	table, timescales := d.matrix("embedding"), d.matrix("timescales")[0]
	for i, id := range ids {
		x[i] = make([]float64, inputWidth)
		for j, scale := range timescales {
			x[i][j] = 2*table[id][j] + math.Sin(float64(i)*scale)
			x[i][j+128] = 2*table[id][j+128] + math.Cos(float64(i)*scale)
		}
	}
	x = d.feedForward("layer0.forward", sum(d.dense("layer0.residual", x), d.attention("layer0.attention", x)))
	x = d.feedForward("layer1.forward", sum(x, d.attention("layer1.attention", x)))
	mean := make([]float64, width)
	for _, row := range x {
		for j, v := range row {
			mean[j] += v / float64(len(x))
		}
	}
	out := make([]float32, Dims)
	var squares float64
	answer := d.dense("output", [][]float64{mean})[0]
	for _, v := range answer {
		squares += math.Tanh(v) * math.Tanh(v)
	}
	for i, v := range answer {
		out[i] = float32(math.Tanh(v) / math.Sqrt(squares))
	}
	return out
}

func (d definition) attention(name string, x [][]float64) [][]float64 {
	qkv := d.dense(name+".qkv", d.norm(name+".norm", x))
	gathered := make([][]float64, len(x))
	for i := range x {
		size := len(qkv[i]) / 3 / heads
		for head := range heads {
			weights, total := make([]float64, len(x)), 0.0
			for k := range x {
				query, key := qkv[i][head*size:][:size], qkv[k][(heads+head)*size:][:size]
				weights[k] = math.Exp(dot(query, key) / math.Sqrt(float64(size)))
				total += weights[k]
			}
			value := make([]float64, size)
			for k := range x {
				for j, v := range qkv[k][(2*heads+head)*size:][:size] {
					value[j] += weights[k] / total * v
				}
			}
			gathered[i] = append(gathered[i], value...)
		}
	}
	return d.dense(name+".output", gathered)
}

func (d definition) feedForward(name string, x [][]float64) [][]float64 {
	inner := d.dense(name+".inner", d.norm(name+".norm", x))
	for _, row := range inner {
		for j := range row {
			row[j] = max(0, row[j])
		}
	}
	return sum(x, d.dense(name+".outer", inner))
}

func (d definition) norm(name string, x [][]float64) [][]float64 {
	scale, bias := d.matrix(name + ".scale")[0], d.matrix(name + ".bias")[0]
	out := make([][]float64, len(x))
	for i, row := range x {
		var mean, variance float64
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(len(row))
		}
		for j, v := range row {
			out[i] = append(out[i], (v-mean)/math.Sqrt(variance+1e-6)*scale[j]+bias[j])
		}
	}
	return out
}

func (d definition) dense(name string, x [][]float64) [][]float64 {
	weights, bias := d.matrix(name+".weights"), d.matrix(name + ".bias")[0]
	out := make([][]float64, len(x))
	for i, row := range x {
		for j, w := range weights {
			out[i] = append(out[i], dot(row, w)+bias[j])
		}
	}
	return out
}

func (d definition) matrix(name string) [][]float64 {
	for _, m := range d.file.Matrices {
		if m.Name != name {
			continue
		}
		rows, buffer := make([][]float64, m.Rows), make([]float32, m.Columns)
		for i := range rows {
			m.Row(i, buffer)
			for _, v := range buffer {
				rows[i] = append(rows[i], float64(v))
			}
		}
		return rows
	}
	d.t.Fatalf("no matrix %s", name)
	return nil
}

func sum(a, b [][]float64) [][]float64 {
	for i := range a {
		for j := range a[i] {
			b[i][j] += a[i][j]
		}
	}
	return b
}

func dot(a, b []float64) (total float64) {
	for i, v := range a {
		total += v * b[i]
	}
	return total
}
