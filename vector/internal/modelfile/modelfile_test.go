package modelfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func sample() *File {
	r := rand.New(rand.NewPCG(7, 7))
	values := make([]float32, 3*64)
	for i := range values {
		values[i] = float32(r.NormFloat64()) * 0.05
	}
	return &File{
		Name:   "sample/1",
		Pieces: []Piece{{"▁the", -3.5}, {"", 0}, {":", 0}},
		Matrices: []Named{
			{"dense", Quantize(3, 64, values)},
			{"bias", Floats(1, 3, []float32{1, -2.5, 1e-30})},
		},
	}
}

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEncodeThenDecodeIsTheSame(t *testing.T) {
	want := sample()
	b := encode(t, want)
	if !bytes.Equal(b, encode(t, sample())) {
		t.Fatal("the same content was encoded differently")
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != want.Name || !reflect.DeepEqual(got.Pieces, want.Pieces) {
		t.Errorf("got %q %v, want %q %v", got.Name, got.Pieces, want.Name, want.Pieces)
	}
	for i, m := range want.Matrices {
		if got.Matrices[i].Name != m.Name {
			t.Errorf("matrix %d is %q, want %q", i, got.Matrices[i].Name, m.Name)
		}
		for row := range m.Rows {
			a, b := make([]float32, m.Columns), make([]float32, m.Columns)
			m.Row(row, a)
			got.Matrices[i].Row(row, b)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%s row %d: got %v, want %v", m.Name, row, b, a)
			}
		}
	}
}

func TestFloatsAreExact(t *testing.T) {
	want := []float32{0, -1, math.MaxFloat32, 1e-40, 3.25, float32(math.Inf(-1))}
	m := Floats(2, 3, want)
	got := make([]float32, 6)
	m.Row(0, got[:3])
	m.Row(1, got[3:])
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestQuantizeIsWithinHalfAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []float64{1e-30, 1e-6, 0.05, 1, 3e4} {
		values := make([]float32, 50*Block)
		for i := range values {
			values[i] = float32(r.NormFloat64() * size)
		}
		m := Quantize(10, 5*Block, values)
		got := make([]float32, len(values))
		for row := range m.Rows {
			m.Row(row, got[row*m.Columns:])
		}
		for at := 0; at < len(values); at += Block {
			checkBlock(t, values[at:at+Block], got[at:at+Block])
		}
	}
}

// checkBlock allows half a step and the rounding of one float32 product.
func checkBlock(t *testing.T, want, got []float32) {
	t.Helper()
	var largest float64
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	allowed := largest / 127 * (0.5*(1+1.0/128) + 1e-4)
	for i := range want {
		if off := math.Abs(float64(want[i]) - float64(got[i])); off > allowed {
			t.Fatalf("%v became %v, off by %v, allowed %v", want[i], got[i], off, allowed)
		}
	}
}

func TestQuantizeCorners(t *testing.T) {
	block := func(first ...float32) []float32 { return append(first, make([]float32, Block-len(first))...) }
	cases := map[string]struct{ in, want []float32 }{
		"zeros":              {block(), block()},
		"exact steps":        {block(127, -127, 1, -64), block(127, -127, 1, -64)},
		"scale rounded up":   {block(127.5), block(127 * 1.0078125)},
		"ties go to even":    {block(127, 0.5, 1.5, -2.5), block(127, 0, 2, -2)},
		"small beside large": {block(-127, 0.4), block(-127, 0)},
	}
	for name, c := range cases {
		got := make([]float32, Block)
		Quantize(1, Block, c.in).Row(0, got)
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: value %d is %v, want %v", name, i, got[i], c.want[i])
			}
		}
	}
}

func TestBlocksDoNotShareAScale(t *testing.T) {
	values := make([]float32, 2*Block)
	values[0], values[Block] = 1000, 0.001
	got := make([]float32, 2*Block)
	Quantize(1, 2*Block, values).Row(0, got)
	if math.Abs(float64(got[Block])-0.001) > 1e-5 {
		t.Errorf("the small block's value became %v", got[Block])
	}
}

func TestWrongSizesPanic(t *testing.T) {
	for name, call := range map[string]func(){
		"too few floats":      func() { Floats(2, 2, make([]float32, 3)) },
		"too few to quantize": func() { Quantize(2, Block, make([]float32, Block)) },
		"no whole block":      func() { Quantize(1, Block+1, make([]float32, Block+1)) },
		"no such row":         func() { Floats(1, 2, make([]float32, 2)).Row(1, make([]float32, 2)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			call()
		}()
	}
}

func TestDecodeRefusesDamage(t *testing.T) {
	whole := encode(t, sample())
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		if _, err := Decode(damaged); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d flipped: got %v, want ErrCorrupt", i, err)
		}
		if _, err := Decode(whole[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: got %v, want ErrCorrupt", i, err)
		}
	}
}

func TestDecodeNamesAnotherVersion(t *testing.T) {
	b := encode(t, sample())
	binary.LittleEndian.PutUint32(b[len(magic):], 9)
	_, err := Decode(seal(b[:len(b)-4]))
	if err == nil || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("got %v, want both versions named", err)
	}
}

// seal appends a valid checksum, so that the checks after it are reached.
func seal(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), checksum(body))
}

func TestEncodeRefusesLongStrings(t *testing.T) {
	long := strings.Repeat("x", math.MaxUint16+1)
	for name, f := range map[string]*File{
		"name":   {Name: long},
		"piece":  {Pieces: []Piece{{Text: long}}},
		"matrix": {Matrices: []Named{{long, Floats(0, 0, nil)}}},
	} {
		if _, err := Encode(f); err == nil {
			t.Errorf("a %s of 65,536 bytes was written", name)
		}
	}
}

func TestMatrixByName(t *testing.T) {
	f := sample()
	if m, err := f.Matrix("dense", 3, 64); err != nil || m.Rows != 3 {
		t.Errorf("got %d rows and %v", m.Rows, err)
	}
	if _, err := f.Matrix("dense", 64, 3); err == nil {
		t.Error("a matrix of another size was returned")
	}
	if _, err := f.Matrix("none", 1, 1); err == nil {
		t.Error("a matrix that does not exist was returned")
	}
}

func FuzzDecode(f *testing.F) {
	whole := encode(f, sample())
	f.Add(whole[:len(whole)-4])
	f.Add([]byte(magic))
	huge := append(
		[]byte(magic), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 255, 255, 255, 255, 224, 255, 255, 255,
	)
	f.Add(huge)
	f.Fuzz(func(t *testing.T, body []byte) {
		file, err := Decode(seal(body))
		if err != nil {
			return
		}
		again := encode(t, file)
		if !bytes.Equal(again, seal(body)) {
			t.Error("the decoded file differs from the encoded one")
		}
	})
}

func BenchmarkRow(b *testing.B) {
	m := Quantize(1, 512, make([]float32, 512))
	dst := make([]float32, 512)
	b.SetBytes(512)
	for b.Loop() {
		m.Row(0, dst)
	}
}
