package vector

import (
	"context"
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/encoder/pretrained"
	"satchel/vector/models"
)

// Models returns the models that are installed as files.
func (ix *Index) Models() *models.Library { return ix.files }

// UseModels replaces the models of the data folder. Call it before Start.
func (ix *Index) UseModels(l *models.Library) { ix.files = l }

// checkFile validates the name of an installed model.
func (ix *Index) checkFile(name string) error {
	info, err := ix.files.Info(name)
	switch {
	case models.IsNotInstalled(err):
		return agent.Invalid(
			"embedding_model",
			"is not installed on this server: \"satchel model list\" shows the models that are",
		)
	case err != nil:
		return err
	case info.Kind != pretrained.Embedder:
		return agent.Invalid("embedding_model", "is a reranker, which computes no vectors")
	}
	return nil
}

// builtIn returns the model inside the binary.
func (ix *Index) builtIn() model {
	return model{name: ix.embedder.Model(), to: agent.Embedding{Provider: agent.LocalEmbedding}}
}

// fromFile returns an installed model. One that is missing has a name that no
// vectors have, and its embeddings fail.
func (ix *Index) fromFile(to agent.Embedding) model {
	m := model{name: to.Model + "@file", to: to}
	info, err := ix.files.Info(to.Model)
	if err != nil {
		return m
	}
	usual := knownPrefixesOf(to.Model)
	if p := info.Prompts; p != nil {
		usual = prefixes{p.Query, p.Passage}
	}
	m.prefixes = usual.replaced(to)
	m.name = info.Vectors() + usual.mark(m.prefixes.passage)
	return m
}

// embedBy returns the function that embeds texts with a model on this machine.
func (ix *Index) embedBy(model model) embedding {
	if model.to.Local() {
		return ix.embed
	}
	return func(ctx context.Context, text string) (v []float32, err error) {
		defer recoverError(&err)
		opened, err := ix.files.Open(model.to.Model)
		if err != nil {
			return nil, err
		}
		if opened.Info.Kind != pretrained.Embedder {
			return nil, agent.Errorf(
				agent.CodeUpstream,
				"the model %s is a reranker, which computes no vectors",
				model.to.Model,
			)
		}
		return opened.Embed(ctx, text)
	}
}

// earlierModels returns the models other than m that have vectors in the file and whose
// vectors this machine can compare with queries. With them, sources that wait to be
// embedded again are found by their previous vectors.
func (ix *Index) earlierModels(ctx context.Context, db *store.DB, m model, query Query) ([]model, error) {
	names, err := store.Read(ctx, db, func(tx *store.Tx) ([]string, error) {
		return tx.VectorModels(query.SourceID)
	})
	if err != nil {
		return nil, err
	}
	var list []model
	for _, name := range names {
		if name == m.name || len(list) == maxEarlier {
			continue
		}
		file, _, found := strings.Cut(name, models.VectorMark)
		candidate := ix.builtIn()
		if found {
			candidate = ix.fromFile(agent.Embedding{Provider: agent.FileEmbedding, Model: file})
		}
		if candidate.name == name {
			list = append(list, candidate)
		}
	}
	return list, nil
}

// maxEarlier limits the models that a search uses in addition to the agent's
// own.
const maxEarlier = 2

// Reembed begins to embed, in the background, the sources whose vectors are of another
// model: all of them if the agent uses a model from a file, and those with vectors of
// such a model if it uses the built-in one. It is called when the settings change.
func (ix *Index) Reembed(ctx context.Context, db *store.DB) error {
	m, err := ix.model(ctx, db)
	if err != nil || !m.isLocal() {
		return err
	}
	like := "*"
	if m.to.Local() {
		like = "*" + models.VectorMark + "*"
	}
	if err := db.ReembedSources(ctx, m.name, like); err != nil {
		return fmt.Errorf("embed sources again: %w", err)
	}
	return nil
}
