package n8n

import "strings"

// noteWorkflow reports problems that belong to no node.
func (c *converter) noteWorkflow() {
	note := func(code, message string) {
		c.notes = append(c.notes, ReportLine{
			Workflow: c.doc.name,
			Level:    Approximate,
			Code:     code,
			Message:  message,
		})
	}
	if len(c.doc.pinned) > 0 {
		note("PIN_DATA", "Pinned data is not imported: "+clip(strings.Join(c.doc.pinned, ", "), 300)+".")
	}
	if len(c.doc.dangling) > 0 {
		note(
			"CONNECTION",
			"Connections that lead nowhere are left out: "+clip(strings.Join(c.doc.dangling, ", "), 300)+".",
		)
	}
}

// report returns the lines of all units.
func (c *converter) report() []ReportLine {
	lines := c.notes
	for _, n := range c.doc.nodes {
		u := c.byName[n.name]
		line := ReportLine{
			Workflow: c.doc.name,
			Node:     u.name,
			Type:     u.kind,
			NodeID:   u.nodeID,
			Level:    Exact,
		}
		if shortKind(u.kind) == "stickyNote" {
			line.Message = clip(strings.TrimSpace(u.p.text("content")), 300)
		}
		if len(u.problems) == 0 {
			lines = append(lines, line)
		}
		for _, p := range u.problems {
			line.Level, line.Code, line.Message = Approximate, p.code, p.message
			if u.unsupported || p.fatal {
				line.Level = Unsupported
			}
			lines = append(lines, line)
		}
	}
	return lines
}
