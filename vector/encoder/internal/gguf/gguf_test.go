package gguf_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"satchel/vector/encoder/internal/gguf"
	"satchel/vector/encoder/pretrained/sample"
)

func TestValuesAndTensors(t *testing.T) {
	g := &sample.GGUF{Version: 2}
	for key, value := range map[string]any{
		"number":   uint32(7),
		"long":     sample.Raw(sample.RawOf(uint32(10), uint64(1<<40))),
		"negative": sample.Raw(sample.RawOf(uint32(5), int32(-3))),
		"part":     float32(0.5),
		"yes":      true,
		"text":     "straße",
		"texts":    []string{"a", "", "bc"},
		"floats":   []float32{1, -2},
		"integers": []int32{3, -4},
		"bytes":    []byte{5, 6},
		"none":     []string{},
	} {
		g.Key(key, value)
	}
	g.Tensor("a", "F32", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	g.Tensor("b", "F16", []int{3}, []float32{1, -2, 0.5})
	g.Tensor("c", "BF16", []int{1, 2}, []float32{1, -2})
	f, err := gguf.Parse(g.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	texts, err := f.Texts("texts", 3)
	floats, err2 := f.Floats("floats", 2)
	integers, err3 := f.Integers("integers", 2)
	if err != nil ||
		err2 != nil ||
		err3 != nil ||
		!slices.Equal(texts, []string{"a", "", "bc"}) ||
		!slices.Equal(floats, []float64{1, -2}) ||
		!slices.Equal(integers, []int32{3, -4}) {
		t.Error(texts, floats, integers, err, err2, err3)
	}
	if f.Number("number", 0) != 7 ||
		f.Number("long", 0) != 1<<40 ||
		f.Number("negative", 9) != 9 ||
		f.Number("text", 9) != 9 ||
		f.Number("integers", 9) != 9 {
		t.Error("numbers are wrong")
	}
	if f.Float("part") != 0.5 ||
		f.Float("number") != 0 ||
		!f.Bool("yes", false) ||
		!f.Bool("number", true) ||
		f.Text("text") != "straße" ||
		f.Text("texts") != "" ||
		string(f.Bytes("bytes")) != "\x05\x06" {
		t.Error("values are wrong")
	}
	for _, wrong := range []error{
		second(f.Texts("texts", 2)),
		second(f.Texts("text", 9)),
		second(f.Texts("floats", 9)),
		second(f.Floats("floats", 3)),
		second(f.Integers("texts", 3)),
		second(f.Integers("missing", 0)),
	} {
		if wrong == nil {
			t.Error("a list of the wrong type was returned")
		}
	}
	row := make([]float32, 3)
	a, err := f.Tensors.Tensor("a", 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if a.Row(1, row); !slices.Equal(row, []float32{4, 5, 6}) {
		t.Errorf("row %v", row)
	}
	b, err := f.Tensors.Tensor("b", 3)
	if err != nil {
		t.Fatal(err)
	}
	if b.Row(0, row); !slices.Equal(row, []float32{1, -2, 0.5}) {
		t.Errorf("row %v", row)
	}
}

func second[T any](_ T, err error) error { return err }

// entry returns a tensor's entry in the file format, with the innermost dimension first.
func entry(name string, kind uint32, offset uint64, dims ...uint64) sample.Raw {
	list := []any{name, uint32(len(dims))}
	for _, d := range dims {
		list = append(list, d)
	}
	return sample.RawOf(append(list, kind, offset)...)
}

// hostile returns files that must be rejected, by a part of the error.
func hostile() map[string][]byte {
	with := func(change func(g *sample.GGUF)) []byte {
		g := &sample.GGUF{}
		change(g)
		return g.Bytes()
	}
	key := func(raw ...any) []byte {
		return with(func(g *sample.GGUF) { g.Key("k", sample.RawOf(raw...)) })
	}
	tensors := func(entries ...sample.Raw) []byte {
		return append(with(func(g *sample.GGUF) {
			for _, e := range entries {
				g.Entry(e)
			}
		}), make([]byte, 64)...)
	}
	return map[string][]byte{
		"not a GGUF":                   []byte("PK\x03\x04 and so on"),
		"cut off":                      []byte("GGUF\x03"),
		"version 1":                    with(func(g *sample.GGUF) { g.Version = 1 }),
		"another byte order":           with(func(g *sample.GGUF) { g.Version = 3 << 24 }),
		"1152921504606846976 keys":     with(func(g *sample.GGUF) { g.SaysKeys = 1 << 60 }),
		"1152921504606846976 tensors":  with(func(g *sample.GGUF) { g.SaysTensors = 1 << 60 }),
		"cut off within its header":    with(func(g *sample.GGUF) { g.SaysKeys = 9999 }),
		"within its header":            key(uint32(8), uint64(4<<30), "x"),
		"cut off within":               key(uint32(8), ^uint64(0)),
		"1152921504606846976 elements": key(uint32(9), uint32(8), uint64(1<<60)),
		"off within its header":        key(uint32(9), uint32(6), uint64(1<<25)),
		"a value of type 9":            key(uint32(9), uint32(9), uint64(1), uint32(4), uint64(1), uint32(1)),
		"a value of type 77":           key(uint32(77), uint64(1)),
		`key "k" occurs twice`: with(func(g *sample.GGUF) {
			g.Key("k", uint32(1))
			g.Key("k", uint32(1))
		}),
		"general.alignment is 0":  with(func(g *sample.GGUF) { g.Key("general.alignment", uint32(0)) }),
		"general.alignment is 24": with(func(g *sample.GGUF) { g.Key("general.alignment", uint32(24)) }),
		"general.alignment is 2147483648": with(func(g *sample.GGUF) {
			g.Key("general.alignment", uint32(1<<31))
		}),
		`tensor "a" has 9 dimensions`:          tensors(entry("a", 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
		`tensor "a" has type 2`:                tensors(entry("a", 2, 0, 32)),
		"blocks of 32":                         tensors(entry("a", 8, 0, 33, 2)),
		"shape is impossible":                  tensors(entry("a", 0, 0, 1<<60, 1<<60)),
		"its shape is impossible":              tensors(entry("a", 0, 0, ^uint64(0))),
		`tensor "a" lies outside`:              tensors(entry("a", 0, 0, 17)),
		`tensor "b" lies outside`:              tensors(entry("a", 0, 0, 1), entry("b", 0, 32, 9)),
		`"a" does not begin where`:             tensors(entry("a", 0, 1<<62, 1)),
		`"b" does not begin where the one`:     tensors(entry("a", 0, 0, 8), entry("b", 0, 0, 8)),
		`"b" does not begin where the one bef`: tensors(entry("a", 0, 0, 9), entry("b", 0, 32, 1)),
		`tensor "a" occurs twice`:              tensors(entry("a", 0, 0, 8), entry("a", 0, 32, 8)),
	}
}

// Sizes in a file's header cannot make the reader allocate much memory.
func TestHostileFilesAreRefused(t *testing.T) {
	for want, data := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := gguf.Parse(data)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%q: %d bytes were allocated", want, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, data := range hostile() {
		f.Add(data)
	}
	f.Add(sample.Of(f, "mean").GGUF("Q8_0").Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := gguf.Parse(data)
		if err != nil {
			return
		}
		total := 0
		for _, name := range parsed.Tensors.Names() {
			one := parsed.Tensors[name]
			total += len(one.Data)
			rows, width := 1, 1
			for i, n := range one.Shape {
				if i == len(one.Shape)-1 {
					width = n
				} else {
					rows *= n
				}
			}
			if width < 1<<20 && rows > 0 && width > 0 {
				one.Row(rows-1, make([]float32, width))
			}
		}
		if total > len(data) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(data))
		}
		_, _ = parsed.Texts("tokenizer.ggml.tokens", 1<<20)
		_, _, _ =
			parsed.Number("general.alignment", 0), parsed.Text("general.name"),
			parsed.Bool("bert.attention.causal", false)
	})
}
