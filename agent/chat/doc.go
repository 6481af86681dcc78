// Package chat runs one turn of a conversation: history, passages from the
// agent's knowledge, and tools that the model calls until it has an answer.
//
// A person's message is stored before the model is called, and the answer once
// it is complete or, if it was cut short, with metadata.partial. A conversation
// is therefore consistent wherever a turn is interrupted. Turns of one
// conversation run one after another.
package chat
