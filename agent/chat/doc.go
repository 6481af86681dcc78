// Package chat makes one turn of a conversation: history, what the agent's
// knowledge says to the question, and tools that the model calls until it has
// an answer.
//
// What people say is stored before the model is asked, and the answer when it
// is whole or, cut short, with metadata.partial. So a conversation stays whole
// wherever a turn is cut. Turns of one conversation run one after another.
package chat
