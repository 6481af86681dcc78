// Package vector turns files into knowledge: it reads them, splits them into
// chunks, computes an embedding for each chunk, and searches by meaning and by
// words.
//
// An Index works in the background. It processes what the files of the agents
// list as unfinished, one step at a time, and every step ends in a commit:
// stopped or killed at any point, it resumes there after the next start. A text
// can be found by its words as soon as it is split, and by its meaning once its
// embeddings are computed.
//
// Embedded and indexed is a chunk's section (the document's title and the
// headings above it) together with its text. Only the text is shown.
package vector
