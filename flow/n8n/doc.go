// Package n8n reads workflows that were exported from n8n and makes workflow
// drafts of them, with a report on every node.
//
// n8n gives every node a list of items and runs it once for each; a node here
// runs once. Nodes that follow a list therefore become the body of a loop, and
// nodes that work on whole lists become code, behind the loop.
//
// The format is described at https://docs.n8n.io/workflows/export-import/; names
// of parameters are those that n8n's editor shows.
package n8n
