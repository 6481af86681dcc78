// Package graph describes the node types and parses the graphs of workflows: it
// validates them and finds their loops.
package graph
