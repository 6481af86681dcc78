package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"satchel/vector/encoder"
)

// exactEnough is the lowest accepted cosine between a golden vector, which has
// six decimals, and that of the float32 weights.
const exactEnough = 0.999999

// distribution collects cosines.
type distribution struct {
	count      int
	sum, least float64
	worst      string
}

func (s *distribution) add(text string, cosine float64) {
	if s.count == 0 || cosine < s.least {
		s.least, s.worst = cosine, text
	}
	s.count++
	s.sum += cosine
}

func (s *distribution) String() string {
	return fmt.Sprintf(
		"%d texts, cosine mean %.6f, least %.6f (%.40q)",
		s.count,
		s.sum/float64(s.count),
		s.least,
		s.worst,
	)
}

// compareGolden fails unless the exact model reproduces the golden vectors.
func compareGolden(exact, small *encoder.Model, name string, report io.Writer) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var golden struct {
		Cases []struct {
			Text   string
			Vector []float32
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var floats, blocks distribution
	for _, c := range golden.Cases {
		if len(c.Vector) != encoder.Dims {
			continue // the empty text has no vector
		}
		floats.add(c.Text, cosine(embed(exact, c.Text), c.Vector))
		blocks.add(c.Text, cosine(embed(small, c.Text), c.Vector))
	}
	if floats.count == 0 || floats.least < exactEnough {
		return fmt.Errorf("the network does not give the golden vectors: %v", &floats)
	}
	fmt.Fprintf(report, "float32 to golden: %v\n8-bit to golden: %v\n", &floats, &blocks)
	return nil
}

// compareTexts reports how close both models are over the lines of a file.
func compareTexts(exact, small *encoder.Model, name string, report io.Writer) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var s distribution
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, encoder.MaxText)
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			s.add(text, cosine(embed(exact, text), embed(small, text)))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if s.count == 0 {
		return fmt.Errorf("%s has no text", name)
	}
	fmt.Fprintf(report, "8-bit to float32: %v\n", &s)
	return nil
}

// embed ignores the error, which only a cancelled context can cause.
func embed(m *encoder.Model, text string) []float32 {
	v, err := m.Embed(context.Background(), text)
	if err != nil {
		panic(err)
	}
	return v
}

// cosine returns the cosine of two vectors of length 1.
func cosine(a, b []float32) float64 {
	var dot float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
	}
	return dot
}
