package main

import (
	"fmt"

	"satchel/vector/internal/modelfile"
)

// modelName identifies the vectors. It must change whenever the vectors do.
const modelName = "use-lite-en/1-q8"

// role is how a matrix is stored.
type role int

const (
	vector role = iota // one row of float32
	table              // rows for lookup, quantized along the row
	dense              // inputs × outputs, stored transposed so that blocks lie along the inputs
)

// entry maps one of our names to the published one.
type entry struct {
	name, published string
	role            role
}

const (
	applied = "module_apply_default/Encoder_en/"
	stack   = applied + "KonaTransformer/Encode/TransformerStack/"
	encode  = applied + "KonaTransformer/Encode/"
	module  = "module/Encoder_en/"
)

// layout lists all matrices of the network, in the order of the file.
func layout() []entry {
	list := []entry{
		{"embedding", "module/Embeddings_en", table},
		{"timescales", stack + "Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1", vector},
		{"layer0.residual.weights", encode + "Layer_0/TransformerLayer/dense/kernel/ConcatPartitions/concat", dense},
		{"layer0.residual.bias", encode + "Layer_0/TransformerLayer/dense/bias/ConcatPartitions/concat", vector},
	}
	for _, layer := range []string{"0", "1"} {
		list = append(list, layerLayout("layer"+layer+".", "Layer_"+layer+"/TransformerLayer/")...)
	}
	return append(
		list,
		entry{"output.weights", module + "hidden_layers/tanh_layer_0/weights", dense},
		entry{"output.bias", module + "hidden_layers/tanh_layer_0/bias", vector},
	)
}

func layerLayout(name, layer string) []entry {
	attention := "MultiheadAttention/"
	kernel := module + "KonaTransformer/Encode/" + layer + attention
	const concat = "/ConcatPartitions/concat"
	const norm = "layer_prepostprocess/layer_norm/layer_norm_"
	return []entry{
		{name + "attention.norm.scale", encode + layer + norm + "scale" + concat, vector},
		{name + "attention.norm.bias", encode + layer + norm + "bias" + concat, vector},
		{name + "attention.qkv.weights", kernel + "qkv_transform_single/kernel/part_0", dense},
		{name + "attention.qkv.bias", encode + layer + attention + "qkv_transform_single/bias" + concat, vector},
		{name + "attention.output.weights", kernel + "output_transform_single/kernel/part_0", dense},
		{name + "attention.output.bias", encode + layer + attention + "output_transform_single/bias" + concat, vector},
		{name + "forward.norm.scale", encode + layer + "FFN/" + norm + "scale" + concat, vector},
		{name + "forward.norm.bias", encode + layer + "FFN/" + norm + "bias" + concat, vector},
		{name + "forward.inner.weights", stack + layer + "FFN/conv1/Tensordot/Reshape_1", dense},
		{name + "forward.inner.bias", encode + layer + "FFN/conv1/bias" + concat, vector},
		{name + "forward.outer.weights", stack + layer + "FFN/conv2/Tensordot/Reshape_1", dense},
		{name + "forward.outer.bias", encode + layer + "FFN/conv2/bias" + concat, vector},
	}
}

// build arranges the published matrices as a model file. shrink stores the
// large ones: modelfile.Quantize, or modelfile.Floats for comparison.
func build(s *source, shrink func(rows, columns int, values []float32) modelfile.Matrix) (*modelfile.File, error) {
	f := &modelfile.File{Name: modelName, Pieces: s.pieces}
	for _, e := range layout() {
		w, ok := s.matrices[e.published]
		if !ok {
			return nil, fmt.Errorf("model.json has no %s", e.published)
		}
		store := shrink
		switch e.role {
		case vector:
			store = modelfile.Floats
		case dense:
			w = w.transpose()
		}
		f.Matrices = append(f.Matrices, modelfile.Named{Name: e.name, Matrix: store(w.rows, w.columns, w.values)})
	}
	return f, nil
}
