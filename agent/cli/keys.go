package cli

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
	"satchel/agent/cli/client"
)

func (program *Program) keys(root *cobra.Command) *cobra.Command {
	keys := &cobra.Command{
		Use:     "key",
		Short:   "Create, list and revoke API keys, and rotate the master key",
		Example: "  satchel key list",
	}
	keys.AddCommand(
		program.createKey(root),
		command{
			use:      "list",
			short:    "List API keys",
			example:  "key list",
			settings: keySettings,
			run:      program.withDataFolder(program.listKeys),
		}.addTo(root),
		command{
			use:      "revoke KEY",
			short:    "Revoke an API key, by id or name, and the keys it created",
			example:  "key revoke reports",
			args:     1,
			settings: keySettings,
			run:      program.withDataFolder(program.revokeKey),
		}.addTo(root),
		command{
			use:      "rotate",
			short:    "Replace the master key and re-encrypt every credential; the server must be stopped",
			example:  "key rotate",
			settings: keySettings,
			run:      program.withDataFolder(program.rotateKey),
		}.addTo(root),
	)
	return keys
}

const strangersFlag = "strangers-read"

func (program *Program) createKey(root *cobra.Command) *cobra.Command {
	var role, strangers string
	var agents []string
	create := command{
		use:      "create NAME",
		short:    "Create an API key and print it once",
		example:  "key create reports --role viewer --agents support-bot",
		args:     1,
		settings: append([]string{"default-role"}, keySettings...),
		long: "The first key closes the server: from then on callers need a key or an identity. Whether those " +
			"without one may still read the\n" +
			"default agent, its conversations and contacts included, is asked with the first key, " +
			"unless --strangers-read or --default-role says so.",
		run: func(c *cobra.Command, args []string) error {
			k := agent.Key{
				Name:   args[0],
				Role:   agent.Role(role),
				Agents: agents,
			}
			key, err := program.Offline(program.config).CreateKey(
				c.Context(),
				k,
				func(a agent.Access) (*agent.Role, error) {
					return program.chooseAccess(a, strangers)
				},
			)
			return program.print(err, "%s\n", key)
		},
	}.addTo(root)
	create.Flags().StringVar(&role, "role", "owner", "owner, admin or viewer")
	create.Flags().StringSliceVar(&agents, "agents", []string{agent.AllAgents}, "agent ids or names, or * for all")
	create.Flags().StringVar(
		&strangers,
		strangersFlag,
		"",
		"yes or no: callers without a key or an identity may read the default agent",
	)
	return create
}

// chooseAccess returns the role that callers without an identity get as a key is made: by the
// flag, or, for the first key while no one has decided, by the answer of the person at the
// terminal. It returns nil, and warns, if there is no answer.
func (program *Program) chooseAccess(stored agent.Access, answer string) (*agent.Role, error) {
	decided := agent.DefaultRoleOf(program.config.Role(), program.config.DefaultRoleSet, stored.Choice).Decided()
	prompting := answer == "" && !decided && !stored.KeyMade
	if prompting && client.IsTerminal(program.In) {
		fmt.Fprint(
			program.Notes,
			"This key closes the server. May callers without a key or an identity read the agent default,\n"+
				"its conversations and contacts included? [yes/no] ",
		)
		line, _ := bufio.NewReader(program.In).ReadString('\n')
		answer = strings.TrimSpace(line)
	}
	role := agent.RoleNone
	switch strings.ToLower(answer) {
	case "":
		if prompting {
			fmt.Fprintln(program.Notes, UndecidedWarning)
		}
		return nil, nil
	case "yes", "y":
		role = agent.RoleViewer
	case "no", "n":
	default:
		return nil, fmt.Errorf("--%s must be yes or no, not %q", strangersFlag, answer)
	}
	if program.config.DefaultRoleSet {
		return nil, errors.New(
			"--" + strangersFlag + " has no effect: --default-role or SATCHEL_DEFAULT_ROLE decides on this",
		)
	}
	return &role, nil
}

// access describes who may use a server that is started with these settings.
func (program *Program) access(stored agent.Access) string {
	open := program.config.AccessAUD == "" && !stored.KeyMade
	return program.config.Access(
		open,
		agent.DefaultRoleOf(program.config.Role(), program.config.DefaultRoleSet, stored.Choice),
	)
}

func (program *Program) rotateKey(*cobra.Command, []string) error {
	n, err := program.Offline(program.config).RotateKey()
	return program.print(err, "the master key was replaced; %d credentials were re-encrypted\n", n)
}

func (program *Program) revokeKey(c *cobra.Command, args []string) error {
	folder := program.Offline(program.config)
	keys, err := folder.Keys(c.Context())
	keys = slices.DeleteFunc(keys, func(k *agent.Key) bool {
		return k.ID != args[0] && k.Name != args[0]
	})
	switch {
	case err != nil:
		return err
	case len(keys) != 1:
		return fmt.Errorf("%d API keys have the id or name %q; \"satchel key list\" lists them", len(keys), args[0])
	}
	return folder.DeleteKey(c.Context(), keys[0].ID)
}

func (program *Program) listKeys(c *cobra.Command, _ []string) error {
	keys, err := program.Offline(program.config).Keys(c.Context())
	if err == nil && len(keys) == 0 {
		fmt.Fprintln(program.Notes, "There are none.")
	}
	for _, k := range keys {
		fmt.Fprintf(
			program.Out, "%s  %s…  %s  %s  %s\n", k.ID, k.Prefix, k.Role,
			strings.Join(k.Agents, ","),
			k.Name,
		)
	}
	return err
}
