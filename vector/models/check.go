package models

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"satchel/vector/encoder/pretrained"
)

// Report is the outcome of Check.
type Report struct {
	Info
	// Seconds is how long one chunk of some 900 characters takes on one processor.
	Seconds float64
	// Published is whether the model computes what its publishers state; nil if
	// nothing of the kind is known.
	Published *bool
	// Answer and Other say how similar a question is to a text that answers it, and to
	// one about something else: cosines of an embedder, probabilities of a reranker.
	Answer, Other float64
}

// What Check compares.
const (
	question  = "How long does a refund take?"
	answering = "We pay your money back within thirty days after the goods have arrived."
	unrelated = "The ferry to the island does not sail on Sundays."
)

// chunk is English of the length of a usual chunk.
const chunk = `An agent keeps everything it knows in one file: its sources, the contacts it has met, ` +
	`each conversation, and the runs of every workflow. When somebody uploads a manual, the text is cut into chunks ` +
	`of about a thousand characters, and each chunk is given a vector, so that a question can be answered even when ` +
	`it shares no word with the text. The work is done in the background and the progress is shown; ` +
	`until it has finished, search by keyword already answers. A refund is paid within thirty days if the goods ` +
	`come back unused, and the customer only has to state the number of the order. Deliveries to the islands take ` +
	`two days longer than those to the mainland, because the ferry does not sail on Sundays. If the printer shows a ` +
	`red light, open the cover, remove the sheet that is stuck, and close the cover again until it clicks.`

// quickStart are the sentences of Sentence Transformers' quick start, and the
// cosines that it states for all-MiniLM-L6-v2 (sbert.net/docs/quickstart.html):
// of the first and second, first and third, and second and third.
var quickStart = struct {
	sentences [3]string
	cosines   [3]float64
}{
	[3]string{"The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."},
	[3]float64{0.6660, 0.1046, 0.1411},
}

// Check compares the files of a model with the hashes they had when it was added,
// and computes a few texts.
func (l *Library) Check(ctx context.Context, name string) (Report, error) {
	info, err := l.Info(name)
	if err != nil {
		return Report{}, err
	}
	for _, f := range info.Files {
		size, sum, err := hashFile(filepath.Join(l.path, name, filepath.FromSlash(f.Name)))
		if err != nil {
			return Report{}, err
		}
		if size != f.Size || sum != f.SHA256 {
			return Report{}, fmt.Errorf(
				"%s has changed since the model was added: its SHA-256 is %s, was %s",
				f.Name, sum, f.SHA256,
			)
		}
	}
	model, err := l.Open(name)
	if err != nil {
		return Report{}, err
	}
	report := Report{Info: info}
	begun := time.Now()
	if model.Kind == pretrained.Reranker {
		if _, err = model.Score(ctx, question, chunk); err != nil {
			return report, err
		}
		report.Seconds = time.Since(begun).Seconds()
		return report, report.compare(ctx, model.Score)
	}
	if _, err := model.Embed(ctx, chunk); err != nil {
		return report, err
	}
	report.Seconds = time.Since(begun).Seconds()
	if err := report.compare(ctx, model.cosine); err != nil {
		return report, err
	}
	return report, report.published(ctx, model)
}

// compare compares a question with two texts.
func (r *Report) compare(
	ctx context.Context,
	like func(ctx context.Context, a, b string) (float64, error),
) (err error) {
	if r.Answer, err = like(ctx, question, answering); err != nil {
		return err
	}
	r.Other, err = like(ctx, question, unrelated)
	return err
}

// cosine returns the cosine of two texts, without prompts.
func (m *Model) cosine(ctx context.Context, a, b string) (float64, error) {
	x, err := m.Embed(ctx, a)
	if err != nil {
		return 0, err
	}
	y, err := m.Embed(ctx, b)
	if err != nil {
		return 0, err
	}
	var sum float64
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum, nil
}

// published compares the model's results with those that its publishers state, if these
// are the weights that those belong to.
func (r *Report) published(ctx context.Context, model *Model) error {
	stated := knownModels["all-MiniLM-L6-v2"].sums[weights]
	for _, f := range r.Files {
		if f.Name != weights || f.SHA256 != stated {
			continue
		}
		same := true
		for i, pair := range [3][2]int{{0, 1}, {0, 2}, {1, 2}} {
			got, err := model.cosine(ctx, quickStart.sentences[pair[0]], quickStart.sentences[pair[1]])
			if err != nil {
				return err
			}
			same = same && math.Abs(got-quickStart.cosines[i]) < 5e-4
		}
		r.Published = &same
	}
	return nil
}
