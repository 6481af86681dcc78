package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

// maxDocument is the largest file of workflows that a server reads, in bytes.
const maxDocument = 4 << 20

func (session *session) importCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "import",
		Short:   "Import workflows from other programs",
		Example: "  satchel import n8n leads.json",
	}
	dry := false
	n8n := &cobra.Command{
		Use:   "n8n FILE...",
		Short: "Import n8n workflows as drafts",
		Args:  cobra.MinimumNArgs(1),
		Long: "Import n8n workflows as drafts, and print what is not exact.\n\nUse the files that Download in " +
			"n8n's editor saves. Workflows in the same file keep their references to each other.",
		Example: "  satchel import n8n leads.json --dry-run",
		RunE: func(c *cobra.Command, files []string) error {
			for _, file := range files {
				if err := session.importFile(c.Context(), file, dry); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			return nil
		},
	}
	n8n.Flags().BoolVar(&dry, "dry-run", false, "create nothing, only report")
	command.AddCommand(n8n)
	return command
}

// importFile imports one file and prints its report.
func (session *session) importFile(ctx context.Context, file string, dry bool) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > maxDocument {
		return fmt.Errorf("a file may have at most %d MB", maxDocument>>20)
	}
	document, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !json.Valid(document) {
		return errors.New("it is not JSON")
	}
	var made struct {
		Workflows   []record `json:"workflows"`
		Schedules   []record `json:"schedules"`
		Tools       []record `json:"tools"`
		Credentials []record `json:"credentials"`
		Report      []record `json:"report"`
	}
	body := map[string]any{
		"format":   "n8n",
		"document": json.RawMessage(document),
		"dry_run":  dry,
	}
	if err := session.api.call(
		ctx,
		http.MethodPost,
		session.path("workflows", "import"),
		nil,
		body,
		&made,
	); err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, made)
	}
	notExact := []record{}
	for _, line := range made.Report {
		if line.text("level") != "exact" {
			notExact = append(notExact, line)
		}
	}
	shown := columns("id", "name", "status")
	if dry { // the ids are of no records
		shown = shown[1:]
	}
	if err := writeTable(session.Out, made.Workflows, shown); err != nil {
		return err
	}
	if len(made.Credentials) > 0 {
		fmt.Fprintln(session.Notes, "Credentials to create:")
		if err := writeTable(session.Notes, made.Credentials, columns("name", "n8n_type", "preset")); err != nil {
			return err
		}
	}
	if len(made.Schedules) > 0 {
		fmt.Fprintln(session.Notes, "Schedules, paused until you activate them:")
		if err := writeTable(session.Notes, made.Schedules, columns("name", "cron_expression")); err != nil {
			return err
		}
	}
	if len(notExact) == 0 {
		return nil
	}
	fmt.Fprintln(session.Notes, "Not exact:")
	return writeTable(session.Notes, notExact, columns("level", "node", "message"))
}
