package n8n

import "strings"

// noteWorkflow reports problems that belong to no node.
func (converter *converter) noteWorkflow() {
	note := func(code, message string) {
		converter.notes = append(converter.notes, ReportLine{
			Workflow: converter.doc.name,
			Level:    Approximate,
			Code:     code,
			Message:  message,
		})
	}
	if len(converter.doc.pinned) > 0 {
		note("PIN_DATA", "Pinned data is not imported: "+clip(strings.Join(converter.doc.pinned, ", "), 300)+".")
	}
	if len(converter.doc.dangling) > 0 {
		note(
			"CONNECTION",
			"Connections that lead nowhere are left out: "+clip(strings.Join(converter.doc.dangling, ", "), 300)+".",
		)
	}
}

// report returns the lines of all units.
func (converter *converter) report() []ReportLine {
	lines := converter.notes
	for _, node := range converter.doc.nodes {
		unit := converter.byName[node.name]
		line := ReportLine{
			Workflow: converter.doc.name,
			Node:     unit.name,
			Type:     unit.kind,
			NodeID:   unit.nodeID,
			Level:    Exact,
		}
		if shortKind(unit.kind) == "stickyNote" {
			line.Message = clip(strings.TrimSpace(unit.p.text("content")), 300)
		}
		if len(unit.problems) == 0 {
			lines = append(lines, line)
		}
		for _, p := range unit.problems {
			line.Level, line.Code, line.Message = Approximate, p.code, p.message
			if unit.unsupported || p.fatal {
				line.Level = Unsupported
			}
			lines = append(lines, line)
		}
	}
	return lines
}
