package main

import (
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

// depth is how many results are looked at: the 10 of MRR@10.
const depth = 10

// modes are the ways of searching that are compared.
var modes = []vector.Mode{vector.Keyword, vector.Vector, vector.Hybrid}

// ranks holds, for each mode, the place of the right answer to each question
// of a set: 1 is the first, 0 is none of the first ten.
type ranks map[vector.Mode][]int

// outcome is what was measured of a set.
type outcome struct {
	set    *set
	chunks int
	ranks  ranks
}

// bench is a data folder with a working index, as a server has them.
type bench struct {
	path   string
	folder *store.Folder
	index  *vector.Index
}

// openBench makes one in a temporary folder. End it with close.
func openBench(ctx context.Context) (*bench, error) {
	path, err := os.MkdirTemp("", "satchel-eval-")
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: path, Log: log})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	b := &bench{path: path, folder: folder, index: vector.New(folder, vector.Local(), log)}
	if err := b.index.Start(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error {
	b.index.Stop()
	return errors.Join(b.folder.Close(), os.RemoveAll(b.path))
}

// measure teaches an agent of its own the documents of a set, with the
// chunking that sources have by default, and asks it the questions.
func (b *bench) measure(ctx context.Context, s *set) (outcome, error) {
	o := outcome{set: s, ranks: ranks{}}
	db, err := b.folder.CreateAgent(ctx, agent.Agent{Name: s.name}, "")
	if err != nil {
		return o, err
	}
	for _, d := range s.documents {
		chunks, err := b.learn(ctx, db, d)
		if err != nil {
			return o, fmt.Errorf("%s: %w", d.name, err)
		}
		o.chunks += chunks
	}
	for _, mode := range modes {
		for _, q := range s.questions {
			found, err := b.index.Search(ctx, db, vector.Query{Text: q.text, Mode: mode, Limit: depth})
			if err != nil {
				return o, fmt.Errorf("%q: %w", q.text, err)
			}
			o.ranks[mode] = append(o.ranks[mode], s.rank(found, q))
		}
	}
	return o, nil
}

// learn makes a source of a document and waits until it is ready. One at a
// time, so that chunks are numbered alike in every run.
func (b *bench) learn(ctx context.Context, db *store.DB, d document) (chunks int, err error) {
	u, err := db.ReceiveFile(ctx, d.name, "", strings.NewReader(d.text), int64(len(d.text)))
	if err != nil {
		return 0, err
	}
	made, err := db.CreateFileSource(ctx, d.name, agent.DefaultChunking, u)
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

// rank returns the place of the first right result, 0 when there is none.
func (s *set) rank(found []vector.Result, q question) int {
	for i, r := range found {
		if s.answers(r, q.answer) {
			return i + 1
		}
	}
	return 0
}
