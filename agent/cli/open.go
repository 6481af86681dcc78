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
func (p *Program) open(c *cobra.Command, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	p.config.Linked = path
	if p.config.sources["data"] == "default" {
		if p.config.Data, err = dataFolderOf(path); err != nil {
			return err
		}
	}
	return p.Serve(c.Context(), p.config)
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
