// Command longlines breaks the lines of Go files that have more than 120 columns, and
// wraps comments of TypeScript that have; with -check it lists them instead, and fails if
// there are any. It changes a file only if its code stays the same.
//
//	go run ./.ci/longlines [-check] [file or folder ...]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "list long lines instead of breaking them")
	flag.Parse()
	roots := flag.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	names, err := sources(roots)
	found := 0
	for _, name := range names {
		if *check {
			long, problem := list(name)
			found, err = found+long, errors.Join(err, problem)
		} else {
			err = errors.Join(err, rewrite(name))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if found > 0 {
		fmt.Fprintf(
			os.Stderr,
			"%d lines have more than %d columns, a tab being %d. Run .ci/format, and break the rest.\n",
			found, limit, tabWidth,
		)
	}
	if err != nil || found > 0 {
		os.Exit(1)
	}
}

// list prints the long lines of a file, and returns how many there are.
func list(name string) (int, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	long, err := longLines(name, text)
	for _, line := range long {
		fmt.Printf("%s:%d\n", name, line+1)
	}
	return len(long), err
}

func longLines(name string, text []byte) ([]int, error) {
	if !strings.HasSuffix(name, ".go") {
		return longScript(text), nil
	}
	s, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	return s.long(), nil
}

// rewrite breaks the long lines of a file.
func rewrite(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(name, ".go") {
		return write(name, text, wrapScript(text))
	}
	broken, err := reformat(name, text)
	if err == nil {
		err = sameCode(text, broken)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return write(name, text, broken)
}

func write(name string, before, after []byte) error {
	if bytes.Equal(before, after) {
		return nil
	}
	return os.WriteFile(name, after, 0o644)
}
