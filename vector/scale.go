package vector

import (
	"context"
	"math"
	"slices"
)

// scale describes a model's cosines between a query and unrelated texts. With
// one model these are around 0.1, with another between 0.7 and 0.8, so a cosine
// means little until that is subtracted. The zero value leaves cosines as they
// are.
type scale struct{ mean, spread float64 }

// builtInScale is the scale of the built-in model, which the weights of a ranking were
// tuned for: over the questions of lab/quality.
var builtInScale = scale{0.12, 0.1}

// level converts a cosine to the scale of the built-in model.
func (s scale) level(cosine float64) float64 {
	if s.spread == 0 {
		return cosine
	}
	return min(builtInScale.mean+builtInScale.spread*(cosine-s.mean)/s.spread, 1)
}

// minSpread prevents a model whose cosines are all alike from turning tiny
// differences into large ones.
const minSpread = 0.01

// scaleOf returns the scale of a model for a query's vector. Models of providers have
// none, because computing their vectors costs money.
func (ix *Index) scaleOf(ctx context.Context, m model, query []float32) (scale, error) {
	if !m.to.File() {
		return scale{}, nil
	}
	vectors, err := ix.backgroundOf(ctx, m)
	if err != nil {
		return scale{}, err
	}
	return scaleTo(query, vectors), nil
}

// unrelatedScale returns the scale of the built-in model for a query's vector. To a text
// in a language that it does not know, all texts in such languages are near: more than
// the background texts are on average, since those are in several languages. A quarter
// of their deviation was tuned with the questions of TestThreshold of the package chat.
func (ix *Index) unrelatedScale(ctx context.Context, m model, query []float32) (scale, error) {
	vectors, err := ix.backgroundOf(ctx, m)
	if err != nil {
		return scale{}, err
	}
	english, foreign := scaleTo(query, vectors[:englishTexts]), scaleTo(query, vectors[englishTexts:])
	if foreign.mean > english.mean {
		return scale{foreign.mean + foreign.spread/4, english.spread}, nil
	}
	return english, nil
}

// highestOf returns the expected highest cosine of n unrelated texts to the query: the
// more there are, the nearer the nearest one is. The cosines are taken as normally
// distributed; the approximation of the expected maximum is Blom's (Statistical
// Estimates and Transformed Beta-Variables, 1958).
func (s scale) highestOf(n int) float64 {
	quantile := (float64(n) - 0.375) / (float64(n) + 0.25)
	return s.mean + s.spread*math.Sqrt2*math.Erfinv(2*quantile-1)
}

// scaleTo returns the mean and the standard deviation of a vector's cosines to others.
func scaleTo(query []float32, vectors [][]float32) scale {
	var sum, squares float64
	for _, v := range vectors {
		c := cosine(query, v)
		sum, squares = sum+c, squares+c*c
	}
	n := float64(len(vectors))
	mean := sum / n
	return scale{mean, max(math.Sqrt(max(squares/n-mean*mean, 0)), minSpread)}
}

// maxBackgrounds limits the models whose background vectors are cached.
const maxBackgrounds = 8

// backgroundOf returns a model's vectors of the everyday texts. They are computed once.
func (ix *Index) backgroundOf(ctx context.Context, model model) ([][]float32, error) {
	ix.mu.Lock()
	vectors := ix.backgrounds[model.name]
	ix.mu.Unlock()
	if vectors != nil {
		return vectors, nil
	}
	texts := slices.Clone(backgroundTexts)
	if model.to.Local() {
		texts = texts[:latinTexts] // the built-in model has no tokens for other scripts
	}
	for i, text := range texts {
		texts[i] = model.prefix() + text
	}
	vectors, err := embedAll(ctx, texts, ix.embedBy(model))
	if err != nil {
		return nil, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.backgrounds) >= maxBackgrounds {
		clear(ix.backgrounds)
	}
	ix.backgrounds[model.name] = vectors
	return vectors, nil
}

// How many of the background texts are English, and how many in Latin script. They come
// first, in this order.
const (
	englishTexts = 16
	latinTexts   = 22
)

// backgroundTexts are texts about nothing in particular, in several languages.
var backgroundTexts = []string{
	"The bridge was closed for repairs, and traffic was led through the old town.",
	"Add the flour slowly and stir until the dough no longer sticks to the bowl.",
	"In the second half the team played with ten men and still won the match.",
	"The museum shows paintings of the nineteenth century in four rooms.",
	"Save the file and start the program again for the change to take effect.",
	"The committee postponed its decision on the budget until the spring.",
	"Most of these birds leave for the south in September and return in April.",
	"A valve in the pipe controls how much water flows into the tank.",
	"She inherited the farm from her grandmother and has kept sheep ever since.",
	"The patient should take one tablet in the morning after a meal.",
	"Interest on the loan is calculated monthly and added to the balance.",
	"The train stops at every station between the airport and the harbour.",
	"Granite is harder than marble and is used for steps and worktops.",
	"The novel tells the story of two brothers who lose sight of each other.",
	"Parents are asked to pick up their children by four o'clock.",
	"A function that returns an error has to be checked by its caller.",
	"Der Vertrag verlängert sich um ein Jahr, wenn er nicht gekündigt wird.",
	"Im Herbst werden die Beete mit Laub bedeckt, damit der Boden nicht friert.",
	"Le marché a lieu chaque samedi matin sur la place de l'église.",
	"La température du four doit être réglée avant de commencer.",
	"El horario de la biblioteca cambia durante los meses de verano.",
	"El motor se detiene cuando el nivel de aceite es demasiado bajo.",
	"会议改到下周三下午举行。",
	"この部品は三年ごとに交換してください。",
}
