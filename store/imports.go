package store

import (
	"context"
	"fmt"

	"satchel/agent"
)

// WorkflowImport has workflows and the schedules and tools that belong to them. All
// ids are given, so that they can refer to each other.
type WorkflowImport struct {
	Workflows []agent.Workflow
	Schedules []agent.ScheduleChange
	Tools     []agent.Tool // renamed if the name is taken

	// CheckSchedule refuses a schedule whose callback cannot be called.
	CheckSchedule func(*agent.Schedule) error
}

// CreateImported creates all workflows, schedules and tools, or none. It returns
// them as they were stored.
func (db *DB) CreateImported(
	ctx context.Context,
	in WorkflowImport,
) (out WorkflowImport, schedules []agent.Schedule, err error) {
	type made struct {
		WorkflowImport
		schedules []agent.Schedule
	}
	all, err := Write(ctx, db, func(tx *Tx) (m made, err error) {
		for _, w := range in.Workflows {
			if w, err = tx.insertWorkflow(w); err != nil {
				return m, err
			}
			m.Workflows = append(m.Workflows, w)
		}
		for _, t := range in.Tools {
			secrets, _, err := takeToolSecrets(&t)
			if err == nil {
				t.Name, err = tx.freeToolName(t.Name)
			}
			if err == nil {
				t, err = tx.insertTool(t, secrets)
			}
			if err != nil {
				return m, err
			}
			m.Tools = append(m.Tools, t)
		}
		for _, change := range in.Schedules {
			s, err := tx.insertSchedule(change, in.CheckSchedule)
			if err != nil {
				return m, err
			}
			m.schedules = append(m.schedules, s)
		}
		return m, nil
	})
	return all.WorkflowImport, all.schedules, err
}

// freeToolName returns a name for a tool, with a number appended if the name is
// taken.
func (tx *Tx) freeToolName(name string) (string, error) {
	free := name
	for n := 2; ; n++ {
		var taken bool
		if err := tx.value(&taken, "SELECT EXISTS (SELECT 1 FROM tools WHERE name = ?)", free); err != nil || !taken {
			return free, err
		}
		free = fmt.Sprintf("%.60s_%d", name, n)
	}
}
