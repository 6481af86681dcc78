package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"satchel/agent"
)

// Limits of the operator's file of commands.
const (
	maxCommandFile = 1 << 20 // bytes
	maxCommands    = 100
)

// Command describes how to start a server that uses standard input and output.
// Commands come only from the operator's file, never from the API, SQL or an import.
type Command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// readCommands reads the operator's file, in the usual form
// {"mcpServers": {"files": {"command": "npx", "args": [], "env": {}}}}.
func readCommands(path string) (map[string]Command, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCommandFile+1))
	if err != nil {
		return nil, err
	}
	var file struct {
		Servers map[string]Command `json:"mcpServers"`
	}
	if len(raw) > maxCommandFile {
		return nil, fmt.Errorf("%s has more than %d MB", path, maxCommandFile>>20)
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Servers) == 0 || len(file.Servers) > maxCommands {
		return nil, fmt.Errorf("%s must have 1 to %d servers in mcpServers", path, maxCommands)
	}
	for name, command := range file.Servers {
		if err := command.check(name); err != nil {
			return nil, fmt.Errorf("%s: mcpServers.%s: %w", path, agent.Clip(name, 100), err)
		}
	}
	return file.Servers, nil
}

func (c Command) check(name string) error {
	switch {
	case !agent.IsCommandName(name):
		return errors.New("the name must have 1 to 100 letters, digits, spaces and . _ - / @")
	case c.Command == "":
		return errors.New("command is required; servers with a url are registered by the API")
	case strings.ContainsRune(c.Command+strings.Join(c.Args, ""), 0):
		return errors.New("command and args must not contain NUL")
	}
	for variable, value := range c.Env {
		if !agent.IsEnvName(variable) || strings.ContainsRune(value, 0) {
			return fmt.Errorf("env.%s cannot be set", agent.Clip(variable, 100))
		}
	}
	return nil
}
