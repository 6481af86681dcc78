// Command quality measures how well search finds the right place: hit@1, hit@3 and
// MRR@10 in each mode, over several sets of questions. It creates a temporary data
// folder, indexes with the real index and uses the real search, so every figure
// is one that an agent would get.
//
//	go run -C vector/lab ./quality
//	go run -C vector/lab ./quality -misses tune
//	go run -C vector/lab ./quality -pool 60
//
// The figures depend only on this repository and, for the technical set, on the
// release of Go whose doc comments are read. docs/figures.md holds the current
// ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"satchel/vector"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("quality", flag.ContinueOnError)
	only := flags.String("set", "", "measure this set alone")
	pool := flags.Int(
		"pool",
		0,
		"ask this many questions of the passages alone that answer them, in ten draws; "+
			"only of the two sets of passages",
	)
	data := flags.String("data", "", "keep the knowledge in this folder, for the next run with the same sets")
	misses := flags.String("misses", "", `list what hybrid search does not put first: "tune", "held out" or "all"`)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	listed := half("")
	if *misses != "" {
		if listed, err = halfNamed(*misses); err != nil {
			return err
		}
	}
	b, err := openBench(ctx, *data)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.close())
	}()
	outcomes, err := measureSets(ctx, b, *only, *pool)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s\n\n", vector.Local().Model(), runtime.Version())
	if err := writeTable(out, outcomes); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := writeSeparation(out, outcomes); err != nil || listed == "" {
		return err
	}
	for _, o := range outcomes {
		if err := writeMisses(out, o, listed); err != nil {
			return err
		}
	}
	return nil
}

// measureSets measures the set with a name, or every set if it is empty. With a pool,
// it measures only sets whose passages can be drawn from, with that many questions
// each.
func measureSets(ctx context.Context, b *bench, name string, pool int) ([]outcome, error) {
	var outcomes []outcome
	for _, l := range loaders {
		if name != "" && name != l.name || pool > 0 && !pooled(l.name) {
			continue
		}
		s, err := l.load()
		if err != nil {
			return nil, err
		}
		measure := b.measure
		if pool > 0 {
			measure = func(ctx context.Context, s *set) (outcome, error) {
				return b.measurePools(ctx, s, pool)
			}
		}
		o, err := measure(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", s.name, err)
		}
		outcomes = append(outcomes, o)
	}
	if len(outcomes) == 0 {
		return nil, fmt.Errorf("there is no set %q", name)
	}
	return outcomes, nil
}
