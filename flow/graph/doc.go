// Package graph knows the types of nodes and reads the graphs of workflows: it
// checks them and finds their loops.
package graph
