// Package compare asks the built-in model and an installed one a user's questions,
// and prints how high each ranks the documents that answer them.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"text/tabwriter"

	"satchel/agent"
	"satchel/agent/cli"
	"satchel/store"
	"satchel/vector"
	"satchel/vector/encoder/pretrained"
	"satchel/vector/models"
)

// Limits of what is measured.
const (
	maxDocuments = 10_000
	maxDocument  = 100 << 20 // bytes
	depth        = 10        // results of each search
	maxMissed    = 20        // questions that are printed
)

// Commands are the commands "satchel model", with the measurement that "check"
// makes.
type Commands struct{ models.Commands }

// Evaluate reads the documents into a temporary agent, asks the questions with the
// built-in model and with the named one, and prints how high the answers rank.
func (c Commands) Evaluate(ctx context.Context, evaluation cli.Evaluation, out io.Writer) (err error) {
	info, err := c.Library.Info(evaluation.Model)
	if err != nil {
		return errors.New(agent.Explain(err))
	}
	if used := c.Library.Reranker(); info.Kind == pretrained.Reranker && used != info.Name {
		return fmt.Errorf("searches use the reranker %s: remove it to measure this one", used)
	}
	questions, err := readQuestions(evaluation.Questions)
	if err != nil {
		return fmt.Errorf("%s: %w", evaluation.Questions, err)
	}
	bench, err := openBench(ctx, c.Library)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, bench.close())
	}()
	if err := bench.load(ctx, evaluation.Documents); err != nil {
		return fmt.Errorf("%s: %w", evaluation.Documents, err)
	}
	for i, q := range questions {
		if bench.sources[q.source] == "" {
			return fmt.Errorf("%s: question %d: there is no document %s", evaluation.Questions, i+1, q.source)
		}
	}
	fmt.Fprintf(out, "%d questions about %d documents\n", len(questions), len(bench.sources))
	return bench.report(ctx, info, questions, out)
}

// bench is an agent in a temporary data folder.
type bench struct {
	path    string
	folder  *store.Folder
	index   *vector.Index
	db      *store.DB
	sources map[string]string // ids, by the documents' paths
}

func openBench(ctx context.Context, library *models.Library) (*bench, error) {
	dir, err := os.MkdirTemp("", "satchel-check-")
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: dir, Log: quiet})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b := &bench{
		path:    dir,
		folder:  folder,
		index:   vector.New(folder, vector.Local(), quiet),
		db:      folder.Default(),
		sources: map[string]string{},
	}
	b.index.UseModels(library)
	if err := b.index.Start(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error {
	b.index.Stop()
	return errors.Join(b.folder.Close(), os.RemoveAll(b.path))
}

// load creates a source for each file below a folder, except hidden ones.
func (b *bench) load(ctx context.Context, dir string) error {
	documents := os.DirFS(dir)
	err := fs.WalkDir(documents, ".", func(name string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || !entry.Type().IsRegular():
			return nil
		case len(b.sources) == maxDocuments:
			return fmt.Errorf("has more than %d documents", maxDocuments)
		}
		return b.add(ctx, documents, name)
	})
	if err != nil {
		return err
	}
	for name, id := range b.sources {
		source, err := b.db.AwaitSource(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case source.Status == agent.SourceReady:
		case source.Error == nil:
			return fmt.Errorf("%s cannot be read", name)
		default:
			return fmt.Errorf("%s cannot be read: %s", name, source.Error.Message)
		}
	}
	return nil
}

func (b *bench) add(ctx context.Context, documents fs.FS, name string) error {
	file, err := documents.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	upload, err := b.db.ReceiveFile(ctx, path.Base(name), "", file, maxDocument)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	source, err := b.db.CreateFileSource(ctx, name, agent.DefaultChunking, upload)
	if err != nil {
		upload.Discard()
		return fmt.Errorf("%s: %w", name, err)
	}
	b.sources[name] = source.ID
	return nil
}

// report prints a table with a line for each model and mode, and the questions that
// the named model does not answer.
func (b *bench) report(ctx context.Context, info models.Info, questions []question, out io.Writer) error {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(writer, "MODEL\tMODE\tMRR@10\tHIT@1\tHIT@3\tHIT@10")
	line := func(model string, q vector.Query) ([]int, error) {
		ranks, err := b.ask(ctx, questions, q)
		if err != nil {
			return nil, err
		}
		f := figuresOf(ranks)
		_, err = fmt.Fprintf(
			writer,
			"%s\t%s\t%.3f\t%.3f\t%.3f\t%.3f\n",
			model, q.Mode, f.mrr, f.hit1, f.hit3, f.hit10,
		)
		return ranks, err
	}
	for _, mode := range []vector.Mode{vector.Keyword, vector.Vector, vector.Hybrid} {
		if _, err := line("built-in", vector.Query{Mode: mode}); err != nil {
			return err
		}
	}
	last := vector.Query{Mode: vector.Hybrid, Rerank: true}
	if info.Kind == pretrained.Embedder {
		last.Rerank = false
		if err := b.use(ctx, info.Name); err != nil {
			return err
		}
		if _, err := line(info.Name, vector.Query{Mode: vector.Vector}); err != nil {
			return err
		}
	}
	ranks, err := line(info.Name, last)
	if err != nil {
		return err
	}
	return errors.Join(writer.Flush(), printMissed(out, questions, ranks))
}

// use computes the vectors of all documents with a model.
func (b *bench) use(ctx context.Context, model string) error {
	_, err := b.db.UpdateSettings(ctx, agent.SettingsChange{
		EmbeddingProvider: agent.Some(agent.FileEmbedding),
		EmbeddingModel:    agent.Some(model),
	})
	if err != nil {
		return err
	}
	if err := b.index.Reembed(ctx, b.db); err != nil {
		return err
	}
	if err := b.index.Wait(ctx, b.db); err != nil {
		return err
	}
	for name, id := range b.sources {
		if source, err := b.db.Source(ctx, id); err != nil || source.Stale {
			return errors.Join(fmt.Errorf("%s: the model made no vectors", name), err)
		}
	}
	return nil
}

// ask returns the rank of the answer to each question, from 1; 0 if it is not among
// the results.
func (b *bench) ask(ctx context.Context, questions []question, query vector.Query) ([]int, error) {
	ranks := make([]int, len(questions))
	query.Limit = depth
	for i, q := range questions {
		query.Text = q.text
		found, err := b.index.Search(ctx, b.db, query)
		if err != nil {
			return nil, fmt.Errorf("question %d: %w", i+1, err)
		}
		for place, r := range found {
			if r.SourceID == b.sources[q.source] && strings.Contains(folded(r.Content), folded(q.passage)) {
				ranks[i] = place + 1
				break
			}
		}
	}
	return ranks, nil
}

// figures are means over questions, from 0 to 1.
type figures struct{ mrr, hit1, hit3, hit10 float64 }

// figuresOf returns the mean of 1/rank, and how many answers are first, among the
// first three and among the first ten.
func figuresOf(ranks []int) (figures figures) {
	one := 1 / float64(len(ranks))
	for _, rank := range ranks {
		if rank == 0 {
			continue
		}
		figures.mrr += one / float64(rank)
		figures.hit10 += one
		if rank <= 3 {
			figures.hit3 += one
		}
		if rank == 1 {
			figures.hit1 += one
		}
	}
	return figures
}

// printMissed prints the questions whose answer is not among the results.
func printMissed(out io.Writer, questions []question, ranks []int) error {
	missed := 0
	for i, rank := range ranks {
		if rank > 0 {
			continue
		}
		if missed++; missed == 1 {
			fmt.Fprintln(out, "\nNot among the first ten:")
		}
		if missed <= maxMissed {
			fmt.Fprintf(out, "  %s (%s)\n", questions[i].text, questions[i].source)
		}
	}
	if missed > maxMissed {
		_, err := fmt.Fprintf(out, "  and %d more\n", missed-maxMissed)
		return err
	}
	return nil
}
