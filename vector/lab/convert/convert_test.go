package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/vector/encoder"
	"satchel/vector/internal/modelfile"
)

// published returns the rows and columns of each published matrix of the layout.
func published() map[string][2]int {
	sizes := map[string][2]int{"embedding": {8002, 256}, "timescales": {1, 128}}
	dense := func(name string, in, out int) {
		sizes[name+".weights"], sizes[name+".bias"] = [2]int{in, out}, [2]int{1, out}
	}
	dense("layer0.residual", 256, 512)
	dense("output", 512, 512)
	for layer, width := range map[string]int{"layer0": 256, "layer1": 512} {
		dense(layer+".attention.qkv", width, 3*width)
		dense(layer+".attention.output", width, 512)
		dense(layer+".forward.inner", 512, 1536)
		dense(layer+".forward.outer", 1536, 512)
		for _, part := range []string{".scale", ".bias"} {
			sizes[layer+".attention.norm"+part] = [2]int{1, width}
			sizes[layer+".forward.norm"+part] = [2]int{1, 512}
		}
	}
	return sizes
}

// randomSource is a source with random weights of the right sizes.
func randomSource() *source {
	r := rand.New(rand.NewPCG(5, 6))
	s := &source{matrices: map[string]weights{}, pieces: make([]modelfile.Piece, firstScored)}
	for i, letter := range "▁abcdefghijklmnopqrstuvwxyz" {
		s.pieces = append(s.pieces, modelfile.Piece{Text: string(letter), Score: -1 - float32(i)})
	}
	sizes := published()
	for _, e := range layout() {
		w := weights{rows: sizes[e.name][0], columns: sizes[e.name][1]}
		w.values = make([]float32, w.rows*w.columns)
		for i := range w.values {
			w.values[i] = (r.Float32() - 0.5) * 0.1
		}
		s.matrices[e.published] = w
	}
	return s
}

// writeGolden writes the model's vectors for the texts, after applying turn to each.
func writeGolden(t *testing.T, m *encoder.Model, turn func([]float32)) string {
	t.Helper()
	type goldenCase struct {
		Text   string    `json:"text"`
		Vector []float32 `json:"vector"`
	}
	file := struct {
		Cases []goldenCase `json:"cases"`
	}{Cases: []goldenCase{{Text: ""}}}
	for _, text := range []string{"hello", "a longer text"} {
		v := embed(m, text)
		turn(v)
		file.Cases = append(file.Cases, goldenCase{text, v})
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "golden.json", data)
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConvert(t *testing.T) {
	s := randomSource()
	exact, _, err := model(s, modelfile.Floats)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "model.bin")
	var report strings.Builder
	other := writeGolden(t, exact, func(v []float32) { slices.Reverse(v) })
	if err := convert(s, out, other, "", &report); err == nil || !strings.Contains(err.Error(), "golden") {
		t.Errorf("other golden vectors: got %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a model was written although the golden vectors differ")
	}
	same := writeGolden(t, exact, func([]float32) {})
	texts := write(t, "texts.txt", []byte("one line\n\n  another one\n"))
	var written [2][]byte
	for i := range written {
		if err := convert(s, out, same, texts, &report); err != nil {
			t.Fatal(err)
		}
		if written[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("two runs wrote different files")
	}
	checkWritten(t, written[0], exact)
	if !strings.Contains(report.String(), "8-bit to float32: 2 texts, cosine mean 0.99") {
		t.Errorf("report: %s", &report)
	}
}

// checkWritten compares embeddings of the written file with those of the original
// weights.
func checkWritten(t *testing.T, data []byte, exact *encoder.Model) {
	t.Helper()
	file, err := modelfile.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	small, err := encoder.New(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := cosine(embed(small, "some text"), embed(exact, "some text")); got < 0.999 {
		t.Errorf("the cosine of the file's vectors and those of its weights is %.5f", got)
	}
	if small.ID != modelName {
		t.Errorf("the file is named %q", small.ID)
	}
}

func TestBuildNamesWhatIsMissing(t *testing.T) {
	for _, e := range []entry{layout()[0], layout()[9]} {
		s := randomSource()
		delete(s.matrices, e.published)
		if _, err := build(s, modelfile.Floats); err == nil || !strings.Contains(err.Error(), e.published) {
			t.Errorf("without %s: got %v", e.published, err)
		}
	}
}

func TestCompareTextsNeedsText(t *testing.T) {
	if err := compareTexts(nil, nil, write(t, "texts.txt", []byte("\n \n")), &strings.Builder{}); err == nil {
		t.Error("a file of blank lines was accepted")
	}
}

func TestRunNeedsTheTarball(t *testing.T) {
	for name, args := range map[string][]string{
		"no -in":      {},
		"not there":   {"-in", filepath.Join(t.TempDir(), "none.tgz")},
		"another one": {"-in", write(t, "other.tgz", tarball(t, map[string]string{"a": "b"}))},
		"bad flag":    {"-nonsense"},
	} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for name, content := range files {
		err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	archive.Close()
	zip.Close()
	return packed.Bytes()
}

func TestCheckSum(t *testing.T) {
	const sumOfABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if err := checkSum([]byte("abc"), sumOfABC); err != nil {
		t.Error(err)
	}
	if err := checkSum([]byte("abd"), sumOfABC); err == nil || !strings.Contains(err.Error(), sumOfABC) {
		t.Errorf("got %v, want both sums named", err)
	}
}

func TestUnpack(t *testing.T) {
	files, err := unpack(tarball(t, map[string]string{"package/dist/a": "one", "package/b": "two"}))
	if err != nil || string(files["a"]) != "one" || string(files["b"]) != "two" {
		t.Errorf("got %q and %v", files, err)
	}
	if _, err := unpack(tarball(t, map[string]string{"a": strings.Repeat("0", maxUnpacked)})); err == nil {
		t.Error("more than the limit was unpacked")
	}
	whole := tarball(t, map[string]string{"a": "one"})
	for _, broken := range [][]byte{nil, whole[:len(whole)/2], []byte("plain text")} {
		if _, err := unpack(broken); err == nil {
			t.Errorf("%d broken bytes were unpacked", len(broken))
		}
	}
}

func TestParseWeights(t *testing.T) {
	var data []byte
	for _, v := range []float32{1, 2, 3, 4, 5, 6, 7.5} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	files := func(weights string) map[string][]byte {
		return map[string][]byte{
			"model.json": []byte(`{"weightsManifest":[{"paths":["s1","s2"],"weights":[` + weights + `]}]}`),
			"s1":         data[:6],
			"s2":         data[6:],
		}
	}
	got, err := parseWeights(
		files(`{"name":"m","dtype":"float32","shape":[1,2,2]},{"name":"i","dtype":"int32","shape":[2]},{"name":"n",` +
			`"dtype":"float32","shape":[]}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	m := got["m"]
	if m.rows != 2 ||
		m.columns != 2 ||
		!slices.Equal(m.values, []float32{1, 2, 3, 4}) ||
		!slices.Equal(got["n"].values, []float32{7.5}) {
		t.Errorf("got %v", got)
	}
	if turned := m.transpose(); !slices.Equal(turned.values, []float32{1, 3, 2, 4}) {
		t.Errorf("transposed: %v", turned.values)
	}
	for name, weights := range map[string]string{
		"past the end":  `{"name":"m","dtype":"float32","shape":[8]}`,
		"negative":      `{"name":"m","dtype":"float32","shape":[-1]}`,
		"left over":     `{"name":"m","dtype":"float32","shape":[6]}`,
		"not JSON":      `{`,
		"too many dims": `{"name":"m","dtype":"float32","shape":[4,1000000]}`,
	} {
		if _, err := parseWeights(files(weights)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestParseVocabulary(t *testing.T) {
	const markers = `["a",0],["b",0],["c",0],["d",0],["e",0],["f",0],`
	got, err := parseVocabulary([]byte(`[` + markers + `["x",-1],[":",null],["y",-3],[":30",30],["z",-5]]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []modelfile.Piece{
		{Text: "x", Score: -1},
		{Text: ":", Score: -2},
		{Text: "y", Score: -3},
		{Text: ":30", Score: -4},
		{Text: "z", Score: -5},
	}
	if !slices.Equal(got[firstScored:], want) {
		t.Errorf("got %v, want %v", got[firstScored:], want)
	}
	for name, vocabulary := range map[string]string{
		"not JSON":          `[`,
		"no text":           `[[1,2]]`,
		"no first score":    `[` + markers + `["x",null],["y",-1]]`,
		"no last score":     `[` + markers + `["x",-1],["y",null]]`,
		"two without score": `[` + markers + `["x",-1],["y",null],["z",null],["w",-2]]`,
		"not sorted":        `[` + markers + `["x",-2],["y",-1]]`,
	} {
		if _, err := parseVocabulary([]byte(vocabulary)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
