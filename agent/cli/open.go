package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// open serves one agent's file in place. What belongs to the server rather than the
// agent, above all the master key, is kept in the user's configuration folder
// unless --data names another.
func (program *Program) open(c *cobra.Command, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	program.config.Linked = path
	if program.config.sources["data"] == "default" {
		if program.config.Data, err = dataFolderOf(path); err != nil {
			return err
		}
	}
	return program.Serve(c.Context(), program.config)
}

// dataFolderOf returns the data folder for one opened file. A path always has the
// same one.
func dataFolderOf(path string) (string, error) {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(
		config,
		"satchel",
		"opened",
		filepath.Base(path)+"-"+hex.EncodeToString(sum[:6]),
	), nil
}
