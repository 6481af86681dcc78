package encoder

import (
	_ "embed"
	"errors"
	"sync"
	"unsafe"
	"weak"

	"satchel/vector/encoder/internal/gemm"
	"satchel/vector/encoder/internal/unigram"
	"satchel/vector/internal/modelfile"
)

// Dims is the length of every vector.
const Dims = 512

// modelFile is the model file. It is a string so that it stays in the binary's
// read-only pages, which the operating system can load and drop.
//
//go:embed model.bin
var modelFile string

// Model is a decoded model, safe for concurrent use.
type Model struct {
	// ID names the model and its version. Vectors with different IDs cannot be
	// compared, so it should be stored with every vector.
	ID string

	vocabulary *unigram.Vocabulary
	network    *network
	scratch    sync.Pool // of *scratch
}

// loaded keeps the model as long as it is in use.
var loaded struct {
	sync.Mutex
	model weak.Pointer[Model]
}

// Load returns the embedded model. The first call decodes it, which takes
// about 15 ms. A decoded model uses 20 MB of heap, and each concurrent Embed 2
// MB more; 7.5 MB of the binary's read-only pages are read too, which the
// operating system can reclaim. All callers share one model, which is freed
// when none of them uses it any longer. An error means that the program was
// built with a damaged model file.
func Load() (*Model, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if m := loaded.model.Value(); m != nil {
		return m, nil
	}
	file, err := modelfile.Decode(content())
	if err != nil {
		return nil, err
	}
	m, err := New(file)
	if err != nil {
		return nil, err
	}
	loaded.model = weak.Make(m)
	return m, nil
}

// content returns the model file without copying it: the embedding matrix is
// read in place.
func content() []byte {
	return unsafe.Slice(unsafe.StringData(modelFile), len(modelFile))
}

// New builds a model from a decoded file and keeps using its memory. It fails
// if a matrix of the network is missing or has another size. It is for the
// converter, which compares weights; others call Load.
func New(file *modelfile.File) (*Model, error) {
	return newModel(file, gemm.Kernels()[0])
}

func newModel(file *modelfile.File, kernel *gemm.Kernel) (*Model, error) {
	if len(file.Pieces) > vocabularyRows {
		return nil, errors.New("encoder: more pieces than rows in the embedding")
	}
	network, err := newNetwork(file, kernel)
	if err != nil {
		return nil, err
	}
	m := &Model{
		ID:         file.Name,
		vocabulary: newVocabulary(file.Pieces),
		network:    network,
	}
	m.scratch.New = func() any { return newScratch(kernel) }
	return m, nil
}
