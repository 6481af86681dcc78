package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertLoop converts a splitInBatches node to a loop.
func convertLoop(c *converter, u *unit) {
	e, items := c.whole(u)
	size := 1.0
	if u.version < 3 {
		size = 10
	}
	size = max(u.p.number("batchSize", size), 1)
	if strings.HasPrefix(u.p.text("batchSize"), "=") {
		u.approximate("BATCH_SIZE", "The batch size is computed; each item is a batch of its own.")
		size = 1
	}
	if u.p.flag("options.reset") {
		u.approximate("RESET", "Reset is not supported: the loop runs once over its items.")
	}
	s := e.in
	if size > 1 || s.ref.path == "" || !s.list {
		js := items[0]
		if size > 1 {
			js = fmt.Sprintf(
				"((list) => Array.from({ length: Math.ceil(list.length / %v) }, (_, i) => list.slice(i "+
					"* %v, (i + 1) * %v)))(%s)",
				size, size, size, js,
			)
		}
		s = c.emitItems(
			u,
			&stream{
				from: s.from,
				at:   e.at,
				same: s.same,
			},
			js,
		)
	}
	r := c.loop(u, u.id, "{{"+s.ref.path+"}}", s)
	r.same = append(r.same, u)
	u.region = r
	body := c.itemStream(r)
	if size > 1 {
		r.same = nil
		body = &stream{
			from:   body.from,
			at:     r,
			list:   true,
			ref:    ref{path: r.variable, js: r.variable},
			guards: map[string]string{},
		}
	}
	u.outputs[loopOutput(u)] = body
	if u.version < 2 {
		u.approximate(
			"LOOP",
			"What follows the last round is found by a condition in n8n; here it belongs behind the handle done.",
		)
	}
}

// doneStream returns the output of a loop after its last iteration: all items that
// came back to it.
func (c *converter) doneStream(u *unit) *stream {
	r := u.region
	if r == nil {
		return nil
	}
	var parts []string
	for _, ports := range u.in {
		for _, p := range ports {
			if s := p.u.outputs[p.output]; u.body[p.u] && s != nil {
				js, _ := c.itemsOf(p.u, s, r.parent)
				parts = append(parts, js)
			} else if p.u == u && s != nil && p.output == loopOutput(u) {
				js, _ := c.itemsOf(u, s, r.parent)
				parts = append(parts, js)
			}
		}
	}
	js := "[]"
	if len(parts) == 1 {
		js = parts[0]
	} else if len(parts) > 1 {
		js = "[..." + strings.Join(parts, ", ...") + "]"
	}
	return &stream{
		from:   []exit{{r.loop, agent.HandleDone, r.parent}},
		at:     r.parent,
		list:   true,
		ref:    ref{js: js},
		guards: map[string]string{},
	}
}
