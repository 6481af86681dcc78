package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"satchel/agent"
	"satchel/store"
	"satchel/vector"
)

// depth is the number of results that are considered: the 10 of MRR@10.
const depth = 10

// modes are the ways of searching that are compared.
var modes = []vector.Mode{vector.Keyword, vector.Vector, vector.Hybrid}

// ranks holds, for each mode, the place of the right answer to each question
// of a set: 1 is the first, 0 is none of the first ten.
type ranks map[vector.Mode][]int

// outcome is the result of measuring a set.
type outcome struct {
	set    *set
	chunks int
	ranks  ranks
	firsts map[vector.Mode][]first
}

// first is the first result of a question.
type first struct {
	score float64
	right bool
}

// bench is a data folder with a running index, like that of a server.
type bench struct {
	path   string
	keep   bool // the folder stays for the next run
	folder *store.Folder
	index  *vector.Index
}

// openBench opens a bench in a folder, or in a temporary folder if path is empty. The
// caller must call close.
func openBench(ctx context.Context, path string) (*bench, error) {
	keep, err := path != "", error(nil)
	if !keep {
		path, err = os.MkdirTemp("", "satchel-quality-")
	}
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: path, Log: log})
	if err != nil {
		return nil, err
	}
	b := &bench{
		path:   path,
		keep:   keep,
		folder: folder,
		index:  vector.New(folder, vector.Local(), log),
	}
	if err := b.index.Start(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error {
	b.index.Stop()
	err := b.folder.Close()
	if b.keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(b.path))
}

// measure loads the documents of a set into an agent, with the default chunking
// of sources, and asks it the questions.
func (b *bench) measure(ctx context.Context, s *set) (outcome, error) {
	o := outcome{
		set:    s,
		ranks:  ranks{},
		firsts: map[vector.Mode][]first{},
	}
	db, err := b.agent(ctx, s, &o)
	if err != nil {
		return o, err
	}
	for _, mode := range modes {
		for _, q := range s.questions {
			found, err := b.index.Search(ctx, db, vector.Query{
				Text:  q.text,
				Mode:  mode,
				Limit: depth,
			})
			if err != nil {
				return o, fmt.Errorf("%q: %w", q.text, err)
			}
			place := s.rank(found, q)
			o.ranks[mode] = append(o.ranks[mode], place)
			if len(found) > 0 {
				o.firsts[mode] = append(o.firsts[mode], first{found[0].Score, place == 1})
			}
		}
	}
	return o, nil
}

// agent returns the agent that knows the documents of a set.
func (b *bench) agent(ctx context.Context, s *set, o *outcome) (*store.DB, error) {
	name := strings.ReplaceAll(s.name, " ", "-")
	if db, err := b.folder.Agent(name); err == nil {
		return db, nil
	}
	db, err := b.folder.CreateAgent(ctx, agent.Agent{Name: name}, "")
	if err != nil {
		return nil, err
	}
	for _, d := range s.documents {
		chunks, err := b.learn(ctx, db, d, s.chunking)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		o.chunks += chunks
	}
	return db, nil
}

// learn creates a source from a document and waits until it is ready. Sources are
// created one at a time, so that chunks have the same numbers in every run.
func (b *bench) learn(ctx context.Context, db *store.DB, d document, c agent.Chunking) (chunks int, err error) {
	u, err := db.ReceiveFile(
		ctx,
		d.name,
		"",
		strings.NewReader(d.text),
		int64(len(d.text)),
	)
	if err != nil {
		return 0, err
	}
	made, err := db.CreateFileSource(ctx, d.name, cmp.Or(c, agent.DefaultChunking), u)
	if err != nil {
		u.Discard()
		return 0, err
	}
	if err := b.index.Wait(ctx, db); err != nil {
		return 0, err
	}
	ready, err := db.Source(ctx, made.ID)
	if err == nil && ready.Status != agent.SourceReady {
		err = fmt.Errorf("the source is %s", ready.Status)
	}
	return ready.Chunks, err
}

// rank returns the position of the first right result, or 0 if there is none.
func (s *set) rank(found []vector.Result, q question) int {
	for i, r := range found {
		if s.answers(r, q.answer) {
			return i + 1
		}
	}
	return 0
}
