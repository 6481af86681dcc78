// Package pretrained runs text encoders from the folders in which they are
// published: model.safetensors, config.json, tokenizer.json and, for models of
// Sentence Transformers, modules.json with what follows the encoder. Embedders may
// also be one GGUF file, as llama.cpp's converter writes them.
//
// There are two kinds of models. An embedder computes the vector of a text; a reranker
// reads a query together with a passage and estimates how well the passage answers the
// query. The encoders are BERT and XLM-RoBERTa: post-norm transformers (Devlin et al.,
// 2018; Conneau et al., 2019), in float32.
//
// Files are untrusted. Sizes are limited, and anything that would change the
// result and is not implemented here is an error.
package pretrained
