package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"satchel/agent"
)

// Replicas is what the commands can do with the replicas that a server keeps.
type Replicas interface {
	List(context.Context) ([]agent.Replica, error)
	// Restore adds an agent, named by id or name, to a data folder as a new, paused
	// agent in its state at a time; zero is the newest state. last is the time of its
	// last change.
	Restore(ctx context.Context, idOrName string, at time.Time, folder string) (id string, last time.Time, err error)
	// Put puts the agent's file into a data folder as it was, under its id, which
	// must be free there.
	Put(ctx context.Context, idOrName string, at time.Time, folder string) (id string, last time.Time, err error)
	Doctor(context.Context) agent.Finding
}

// restoreFlags has the flags of restore.
type restoreFlags struct {
	from, at, to string
	all          bool
}

func (program *Program) restoreCommand(root *cobra.Command) *cobra.Command {
	var flags restoreFlags
	c := command{
		use:     "restore FILE|AGENT",
		short:   "Restore a backup, or an agent from its replica, as a paused agent; the server may run",
		example: "restore support-bot.db",
		long: "With --from, AGENT is the id or the name of an agent in the replicas there:\n\n" +
			"  satchel restore support-bot --from s3://backups/satchel --at 2026-11-23T10:30:00Z\n\n" +
			"With --to, its file is written to another data folder exactly as it was, API keys included:\n\n" +
			"  satchel restore --all --from s3://backups/satchel --to /srv/satchel",
		settings: fileSettings,
		run: func(c *cobra.Command, args []string) error {
			return program.restore(c, args, flags)
		},
	}.addTo(root)
	c.Args = func(c *cobra.Command, args []string) error {
		if flags.all {
			return cobra.NoArgs(c, args)
		}
		return cobra.ExactArgs(1)(c, args)
	}
	c.Flags().StringVar(&flags.from, "from", "", "restore from the replicas in this folder or s3:// URL")
	c.Flags().StringVar(
		&flags.at,
		"at",
		"",
		"as of this time, as 2026-11-23T10:30:00Z or, in local time, \"2026-11-23 10:30\" (default the newest)",
	)
	c.Flags().StringVar(&flags.to, "to", "", "write the file unchanged to this data folder")
	c.Flags().BoolVar(&flags.all, "all", false, "restore every agent that was not deleted; needs --from and --to")
	return c
}

func (program *Program) restore(command *cobra.Command, args []string, flags restoreFlags) error {
	switch {
	case flags.from == "" && (flags.at != "" || flags.to != "" || flags.all):
		return errors.New("--at, --to and --all need --from, which says where the replicas are")
	case flags.from == "":
		id, err := program.Offline(program.config).Restore(command.Context(), args[0])
		return program.print(err, "restored as %s, paused\n", id)
	case flags.all && flags.to == "":
		return errors.New("--all needs --to, the data folder to restore to")
	}
	at, err := parseTime(flags.at, time.Local)
	if err != nil {
		return err
	}
	replicas, err := program.Replicas(flags.from)
	if err != nil {
		return fmt.Errorf("--from %q %w", flags.from, err)
	}
	if flags.all {
		return program.restoreAll(command.Context(), replicas, at, flags.to)
	}
	return program.restoreOne(command.Context(), replicas, args[0], at, flags.to)
}

// restoreAll restores every agent that existed at a time. A failure does not stop
// the others.
func (program *Program) restoreAll(ctx context.Context, replicas Replicas, at time.Time, to string) (failed error) {
	all, err := replicas.List(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		deleted := !r.Deleted.IsZero() && (at.IsZero() || at.After(r.Deleted))
		if deleted ||
			r.From.IsZero() && r.Problem == "" ||
			!at.IsZero() && at.Before(r.From) {
			continue
		}
		if err := program.restoreOne(ctx, replicas, r.ID, at, to); err != nil {
			failed = errors.Join(failed, fmt.Errorf("agent %s: %w", r.ID, err))
		}
	}
	return failed
}

func (program *Program) restoreOne(
	ctx context.Context,
	replicas Replicas,
	idOrName string,
	at time.Time,
	to string,
) error {
	if to != "" {
		id, last, err := replicas.Put(ctx, idOrName, at, to)
		return program.print(err, "%s is in %s, as of %s\n", id, to, last.Format(time.RFC3339))
	}
	id, last, err := replicas.Restore(ctx, idOrName, at, program.config.Data)
	return program.print(err, "restored as %s, paused, as of %s\n", id, last.Format(time.RFC3339))
}

// parseTime reads a time of RFC 3339, or a date and a time of a zone. Empty is the
// zero time.
func parseTime(text string, zone *time.Location) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err = time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("--at %s is not a time like 2026-11-23T10:30:00Z or \"2026-11-23 10:30\"", quote(text))
}

func (program *Program) replicas(root *cobra.Command) *cobra.Command {
	replicas := &cobra.Command{
		Use:     "replicas",
		Short:   "List the agents that can be restored from replicas",
		Example: "  satchel replicas list --from s3://backups/satchel",
	}
	var from string
	list := command{
		use:      "list",
		short:    "List the agents that can be restored, and the times as of which",
		example:  "replicas list --from s3://backups/satchel",
		settings: []string{"replicate"},
		run: func(c *cobra.Command, _ []string) error {
			return program.listReplicas(c.Context(), from)
		},
	}.addTo(root)
	list.Flags().StringVar(&from, "from", "", "the folder or s3:// URL (default what --replicate says)")
	replicas.AddCommand(list)
	return replicas
}

func (program *Program) listReplicas(ctx context.Context, from string) error {
	from = cmp.Or(from, program.config.Replicate)
	if from == "" {
		return errors.New("set --from, or --replicate as for the server")
	}
	replicas, err := program.Replicas(from)
	if err != nil {
		return fmt.Errorf("%q %w", from, err)
	}
	all, err := replicas.List(ctx)
	if err == nil && len(all) == 0 {
		fmt.Fprintln(program.Notes, "There are none.")
	}
	for _, r := range all {
		note := "from " + r.From.Format(time.RFC3339) + " to " + r.To.Format(time.RFC3339)
		if r.From.IsZero() {
			note = "no snapshot yet"
		}
		if !r.Deleted.IsZero() {
			note += ", deleted " + r.Deleted.Format(time.RFC3339)
		}
		if r.Problem != "" {
			note += ", but " + r.Problem
		}
		fmt.Fprintf(program.Out, "%s  %s  %s\n", r.ID, note, r.Name)
	}
	return err
}
