package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
)

const definitionLong = "A definition is the agent's description and settings, APIs, MCP servers, tools, channels, " +
	"tables, workflows, schedules, calendar, canned replies and webhooks as JSON files, " +
	"without secrets, rows and sources."

func (session *session) export() *cobra.Command {
	return &cobra.Command{
		Use:   "export AGENT DIR",
		Short: "Write an agent's definition to a folder of text files",
		Args:  cobra.ExactArgs(2),
		Long: "Write an agent's definition to a folder of text files.\n\n" + definitionLong +
			" \"satchel apply\" applies it to an agent.",
		Example:           "  satchel export bakery ./bakery",
		ValidArgsFunction: firstArgument(session.completeAgent),
		RunE: func(c *cobra.Command, args []string) error {
			session.agent = args[0]
			return session.writeDefinition(c.Context(), args[1])
		},
	}
}

func (session *session) writeDefinition(ctx context.Context, dir string) error {
	before, err := loadDefinition(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = newDefinition()
	case err != nil:
		return err
	}
	definition, err := session.readDefinition(ctx, before)
	if err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, definition.files)
	}
	for _, path := range definition.paths() {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(path)), definition.files[path].file()); err != nil {
			return err
		}
	}
	removed, err := removeFiles(dir, before, definition)
	session.recordIDs(dir, definition.agentID, definition.ids, definition.files)
	if err == nil {
		fmt.Fprintf(session.Notes, "Files in %s: %d, removed: %d\n", dir, len(definition.files), removed)
	}
	return err
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// removeFiles removes the files of records that are no longer there.
func removeFiles(dir string, before, now *definition) (removed int, err error) {
	for path := range before.files {
		if now.files[path] == nil {
			err = errors.Join(err, os.Remove(filepath.Join(dir, filepath.FromSlash(path))))
			removed++
		}
	}
	return removed, err
}

// loadDefinition reads a folder. Other files in it are left alone.
func loadDefinition(dir string) (*definition, error) {
	d := newDefinition()
	if err := d.load(dir, agentFile); err != nil {
		return nil, err
	}
	var err error
	if d.recorded, err = readIDs(dir); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		entries, err := os.ReadDir(filepath.Join(dir, k.name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".json") {
				continue
			}
			if err := d.load(dir, k.name+"/"+entry.Name()); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

func (d *definition) load(dir, path string) error {
	name := filepath.Join(dir, filepath.FromSlash(path))
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var r record
	if err := agent.DecodeJSON(raw, &r); err != nil || r == nil {
		return fmt.Errorf("%s is not a JSON object: %w", name, err)
	}
	d.files[path] = r
	return nil
}
