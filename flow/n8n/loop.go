package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
)

// convertLoop converts a splitInBatches node to a loop.
func convertLoop(converter *converter, unit *unit) {
	env, items := converter.whole(unit)
	size := 1.0
	if unit.version < 3 {
		size = 10
	}
	size = max(unit.p.number("batchSize", size), 1)
	if strings.HasPrefix(unit.p.text("batchSize"), "=") {
		unit.approximate("BATCH_SIZE", "The batch size is computed; each item is a batch of its own.")
		size = 1
	}
	if unit.p.flag("options.reset") {
		unit.approximate("RESET", "Reset is not supported: the loop runs once over its items.")
	}
	s := env.in
	if size > 1 || s.ref.path == "" || !s.list {
		js := items[0]
		if size > 1 {
			js = fmt.Sprintf(
				"((list) => Array.from({ length: Math.ceil(list.length / %v) }, (_, i) => list.slice(i "+
					"* %v, (i + 1) * %v)))(%s)",
				size, size, size, js,
			)
		}
		s = converter.emitItems(
			unit,
			&stream{
				from: s.from,
				at:   env.at,
				same: s.same,
			},
			js,
		)
	}
	region := converter.loop(unit, unit.id, "{{"+s.ref.path+"}}", s)
	region.same = append(region.same, unit)
	unit.region = region
	body := converter.itemStream(region)
	if size > 1 {
		region.same = nil
		body = &stream{
			from:   body.from,
			at:     region,
			list:   true,
			ref:    ref{path: region.variable, js: region.variable},
			guards: map[string]string{},
		}
	}
	unit.outputs[loopOutput(unit)] = body
	if unit.version < 2 {
		unit.approximate(
			"LOOP",
			"What follows the last round is found by a condition in n8n; here it belongs behind the handle done.",
		)
	}
}

// doneStream returns the output of a loop after its last iteration: all items that
// came back to it.
func (converter *converter) doneStream(unit *unit) *stream {
	region := unit.region
	if region == nil {
		return nil
	}
	var parts []string
	for _, ports := range unit.in {
		for _, p := range ports {
			if s := p.u.outputs[p.output]; unit.body[p.u] && s != nil {
				js, _ := converter.itemsOf(p.u, s, region.parent)
				parts = append(parts, js)
			} else if p.u == unit && s != nil && p.output == loopOutput(unit) {
				js, _ := converter.itemsOf(unit, s, region.parent)
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
		from:   []exit{{region.loop, agent.HandleDone, region.parent}},
		at:     region.parent,
		list:   true,
		ref:    ref{js: js},
		guards: map[string]string{},
	}
}
