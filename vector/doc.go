// Package vector makes knowledge of files: it reads them, cuts them into
// chunks, gives each chunk an embedding, and searches by meaning and by words.
//
// An Index does the work in the background. It takes whatever the files of the
// agents say is unfinished, one step at a time, and every step ends in a
// commit: stopped or killed at any point, it goes on from there when it starts
// again. A text is found by its words as soon as it has been cut, and by its
// meaning once its embeddings are made.
//
// What is embedded and indexed is a chunk's section (the document's title and
// the headings above it) and its text. What is shown is the text.
package vector
