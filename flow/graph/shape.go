package graph

import (
	"fmt"
	"slices"

	"satchel/agent"
)

// checkStructure checks the rules of an executable graph beyond the data of each
// node, and finds the bodies of its loops.
func (g *Graph) checkStructure(is *agent.Issues) {
	complain := func(node int, field, issue string) {
		is.AddNode(g.Nodes[node].ID, fmt.Sprintf("nodes[%d].%s", node, field), issue)
	}
	before := len(*is)
	is.Check(
		slices.ContainsFunc(g.Nodes, func(n agent.Node) bool {
			return n.Type == agent.NodeTrigger
		}),
		"nodes",
		"needs a trigger",
	)
	for _, e := range g.Edges {
		if _, known := resolveHandle(&g.Nodes[e.Source], e.Handle); !known && e.Handle != "" {
			complain(e.Source, "sourceHandle", fmt.Sprintf("%q is not a handle of this node", agent.Clip(e.Handle, 60)))
			(*is)[len(*is)-1].EdgeID = e.ID
		}
		if g.Nodes[e.Target].Type == agent.NodeTrigger {
			complain(e.Target, "type", "is trigger, which cannot have incoming edges")
		}
	}
	if len(*is) > before {
		return
	}
	g.findLoops(complain)
	if len(*is) == before {
		g.findCycle(complain)
	}
}

// findLoops finds the body of each loop: the nodes reachable from its handle
// "loop" without passing through the loop itself.
func (g *Graph) findLoops(complain func(node int, field, issue string)) {
	g.Loop = make([]int, len(g.Nodes))
	for i := range g.Loop {
		g.Loop[i] = -1
	}
	bodies := map[int][]bool{}
	var loops []int
	for i, n := range g.Nodes {
		if n.Type == agent.NodeLoop {
			bodies[i] = g.loopBody(i)
			loops = append(loops, i)
		}
	}
	size := func(loop int) (n int) {
		for _, in := range bodies[loop] {
			if in {
				n++
			}
		}
		return n
	}
	sizes := map[int]int{}
	for _, loop := range loops {
		sizes[loop] = size(loop)
	}
	slices.SortStableFunc(loops, func(a, b int) int {
		return sizes[b] - sizes[a]
	}) // outer loops first
	for _, loop := range loops {
		body := bodies[loop]
		for node, in := range body {
			if !in {
				continue
			}
			if other := bodies[node]; other != nil && other[loop] {
				complain(
					loop,
					"type",
					fmt.Sprintf("is loop, and it and the loop %q are in each other's body", g.Nodes[node].ID),
				)
				return
			}
			g.Loop[node] = loop
		}
		for _, e := range g.Edges {
			if body[e.Target] &&
				!body[e.Source] &&
				!(e.Source == loop && e.Handle == agent.HandleLoop) {
				complain(
					e.Target,
					"id",
					fmt.Sprintf(
						"is in the body of the loop %q, and an edge from %q leads into it from outside",
						g.Nodes[loop].ID,
						g.Nodes[e.Source].ID,
					),
				)
			}
		}
	}
}

// loopBody marks the nodes of a loop's body.
func (g *Graph) loopBody(loop int) []bool {
	in := make([]bool, len(g.Nodes))
	var open []int
	visit := func(e Link) {
		if e.Target != loop && !in[e.Target] {
			in[e.Target] = true
			open = append(open, e.Target)
		}
	}
	for _, e := range g.Out[loop] {
		if g.Edges[e].Handle == agent.HandleLoop {
			visit(g.Edges[e])
		}
	}
	for len(open) > 0 {
		node := open[len(open)-1]
		open = open[:len(open)-1]
		for _, e := range g.Out[node] {
			visit(g.Edges[e])
		}
	}
	return in
}

// Counts reports whether the target of an edge waits for it. Edges from a
// loop's body back to the loop do not count: they end an iteration.
func (g *Graph) Counts(e Link) bool {
	return g.Loop[e.Source] == g.Loop[e.Target] || g.Loop[e.Target] == e.Source && e.Handle == agent.HandleLoop
}

// findCycle finds nodes that wait for themselves.
func (g *Graph) findCycle(complain func(node int, field, issue string)) {
	pending := make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		if g.Counts(e) {
			pending[e.Target]++
		}
	}
	var ready []int
	for node, n := range pending {
		if n == 0 {
			ready = append(ready, node)
		}
	}
	for done := 0; done < len(ready); done++ {
		for _, i := range g.Out[ready[done]] {
			e := g.Edges[i]
			if !g.Counts(e) {
				continue
			}
			if pending[e.Target]--; pending[e.Target] == 0 {
				ready = append(ready, e.Target)
			}
		}
	}
	for node, n := range pending {
		if n > 0 {
			complain(node, "id", "is in a cycle or after one; only the body of a loop may lead back, to its loop")
			return
		}
	}
}

// HasPath reports whether a path leads from one node to another, ignoring edges
// back into a loop.
func (g *Graph) HasPath(from, to int) bool {
	seen := map[int]bool{}
	for open := []int{from}; len(open) > 0; {
		node := open[len(open)-1]
		open = open[:len(open)-1]
		for _, i := range g.Out[node] {
			e := g.Edges[i]
			if g.Loop != nil && !g.Counts(e) || seen[e.Target] {
				continue
			}
			if e.Target == to {
				return true
			}
			seen[e.Target] = true
			open = append(open, e.Target)
		}
	}
	return false
}

// InLoopBody reports whether a node is in the body of a loop.
func (g *Graph) InLoopBody(node, loop int) bool {
	for g.Loop != nil && g.Loop[node] >= 0 {
		if node = g.Loop[node]; node == loop {
			return true
		}
	}
	return false
}
