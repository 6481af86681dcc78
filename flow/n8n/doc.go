// Package n8n converts workflows exported from n8n into workflow drafts, with a
// report on every node.
//
// n8n passes a list of items to each node and runs it once for each; a node here
// runs once. Nodes that follow a list therefore become the body of a loop, and
// nodes that work on whole lists become code after the loop.
//
// The format is described at https://docs.n8n.io/workflows/export-import/; names
// of parameters are those that n8n's editor shows.
package n8n
