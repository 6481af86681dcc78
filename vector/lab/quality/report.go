package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"satchel/vector"
)

// half is a part of a set's questions. Changes to the search are chosen by the tune
// half alone; the held-out half shows whether they were good choices.
type half string

const (
	tune    half = "tune"
	heldOut half = "held out"
	all     half = "all"
)

// has reports whether question i of a set belongs to the half: they alternate.
func (h half) has(i int) bool {
	switch h {
	case tune:
		return i%2 == 0
	case heldOut:
		return i%2 == 1
	}
	return true
}

// figures are the measures of a list of ranks, 0 to 1.
type figures struct {
	hit1, hit3, mrr float64
	n               int
}

// figuresOf returns the share of questions whose answer came first and among
// the first three, and the mean of 1/rank, with 0 beyond the tenth place.
func figuresOf(places []int, h half) figures {
	var f figures
	for i, place := range places {
		if !h.has(i) {
			continue
		}
		f.n++
		if place == 1 {
			f.hit1++
		}
		if place >= 1 && place <= 3 {
			f.hit3++
		}
		if place >= 1 {
			f.mrr += 1 / float64(place)
		}
	}
	if n := float64(f.n); n > 0 {
		f.hit1, f.hit3, f.mrr = f.hit1/n, f.hit3/n, f.mrr/n
	}
	return f
}

// writeTable writes the figures of outcomes as a table in Markdown.
func writeTable(w io.Writer, outcomes []outcome) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| set\t| half\t| questions\t| chunks\t| mode\t| hit@1\t| hit@3\t| MRR@10\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, o := range outcomes {
		for _, h := range []half{tune, heldOut, all} {
			for _, mode := range modes {
				f := figuresOf(o.ranks[mode], h)
				fmt.Fprintf(
					t, "| %s\t| %s\t| %d\t| %d\t| %s\t| %.3f\t| %.3f\t| %.3f\t|\n",
					o.set.name, h, f.n, o.chunks, mode, f.hit1, f.hit3, f.mrr,
				)
			}
		}
	}
	return t.Flush()
}

// writeSeparation writes how well the score of the first result separates
// right ones from others, in each mode over all outcomes: the area under the ROC
// curve, which is the probability that a right one has the higher score.
func writeSeparation(w io.Writer, outcomes []outcome) error {
	for _, mode := range modes {
		var firsts []first
		for _, o := range outcomes {
			firsts = append(firsts, o.firsts[mode]...)
		}
		if _, err := fmt.Fprintf(
			w,
			"%s: the score of %d first results separates right from wrong with AUC %.3f\n",
			mode,
			len(firsts),
			separation(firsts),
		); err != nil {
			return err
		}
	}
	return nil
}

// separation is the probability that the score of a right first result is higher
// than that of a wrong one, where equal ones count half.
func separation(firsts []first) float64 {
	var above, pairs float64
	for _, a := range firsts {
		for _, b := range firsts {
			if !a.right || b.right {
				continue
			}
			if pairs++; a.score > b.score {
				above++
			} else if a.score == b.score {
				above += 0.5
			}
		}
	}
	return above / max(pairs, 1)
}

// writeMisses lists the questions of a half whose answer hybrid search does
// not put first, with its place in each mode; "-" is none of the first ten.
func writeMisses(w io.Writer, o outcome, h half) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s, %s\nkeyword\tvector\thybrid\tquestion\n", o.set.name, h)
	for i, q := range o.set.questions {
		if !h.has(i) || o.ranks[vector.Hybrid][i] == 1 {
			continue
		}
		for _, mode := range modes {
			place := "-"
			if p := o.ranks[mode][i]; p > 0 {
				place = fmt.Sprint(p)
			}
			fmt.Fprintf(t, "%s\t", place)
		}
		fmt.Fprintln(t, q.text)
	}
	return t.Flush()
}

// halfNamed finds the half that a flag names.
func halfNamed(name string) (half, error) {
	halves := []half{tune, heldOut, all}
	i := slices.Index(halves, half(name))
	if i < 0 {
		return "", fmt.Errorf("there is no half %q: choose one of %q", name, halves)
	}
	return halves[i], nil
}
