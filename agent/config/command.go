package config

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
)

// Offline is what the commands beside serve do with the data folder.
type Offline interface {
	Doctor() ([]agent.Finding, error)
	Backup(idOrName, to string) error
	Restore(ctx context.Context, from string) (id string, err error)
	CreateKey(context.Context, agent.Key) (key string, err error)
	Keys(context.Context) ([]*agent.Key, error)
	DeleteKey(ctx context.Context, id string) error
	RotateKey() (credentials int, err error)
}

// Browser is what the commands do with the browser that sessions run in.
type Browser interface {
	Install(ctx context.Context, steps io.Writer) error
	Doctor(context.Context) []agent.Finding
}

// Program is what the command line can ask for; main fills it in. The
// functions get the settings in force.
type Program struct {
	Version string
	Getenv  func(string) string
	Out     io.Writer
	Serve   func(context.Context, *Config) error
	Offline func(*Config) Offline
	Browser func(*Config) Browser

	config *Config
}

// Run parses one command line, loads the settings and runs the command. No
// command is serve.
func (p *Program) Run(ctx context.Context, args []string) error {
	root := &cobra.Command{
		Use: "satchel", Short: "Self-hosted agent automation: one program, one file for each agent",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		PersistentPreRunE: p.load,
		RunE:              p.serve,
	}
	for _, s := range table {
		root.PersistentFlags().String(s.Flag, "", fmt.Sprintf("%s (%s)", s.Usage, s.Env))
		if s.Bool {
			root.PersistentFlags().Lookup(s.Flag).NoOptDefVal = "true"
		}
	}
	root.PersistentFlags().String("config", "", "settings file (SATCHEL_CONFIG); "+DefaultFile+" is read when it is there")
	root.AddCommand(p.commands()...)
	root.SetArgs(args)
	root.SetOut(p.Out)
	return root.ExecuteContext(ctx)
}

func (p *Program) load(c *cobra.Command, _ []string) (err error) {
	lookup := func(name string) (string, bool) {
		f := c.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
	p.config, err = Load(lookup, p.Getenv, DefaultFile)
	return err
}

func (p *Program) serve(c *cobra.Command, _ []string) error { return p.Serve(c.Context(), p.config) }

func (p *Program) commands() []*cobra.Command {
	return []*cobra.Command{
		command("serve", "Serve API and console until stopped", 0, p.serve),
		command("config", "Print the settings in force and where each comes from", 0,
			func(*cobra.Command, []string) error { return p.config.Print(p.Out) }),
		command("doctor", "Examine the data folder and the browser without changing them", 0, p.doctor),
		command("backup AGENT FILE", "Copy an agent, by id or name, to a file; the server may run", 2,
			func(_ *cobra.Command, args []string) error {
				return p.Offline(p.config).Backup(args[0], args[1])
			}),
		command("restore FILE", "Bring a backup back as a paused agent; the server may run", 1,
			func(c *cobra.Command, args []string) error {
				id, err := p.Offline(p.config).Restore(c.Context(), args[0])
				return p.print(err, "restored as %s, paused\n", id)
			}),
		p.keys(),
		p.browser(),
		command("version", "Print the version", 0, func(*cobra.Command, []string) error {
			return p.print(nil, "%s\n", p.Version)
		}),
	}
}

func (p *Program) browser() *cobra.Command {
	browser := &cobra.Command{Use: "browser", Short: "Get the browser that sessions run in"}
	browser.AddCommand(command("install", "Find Chromium and its driver, or download and install them", 0,
		func(c *cobra.Command, _ []string) error { return p.Browser(p.config).Install(c.Context(), p.Out) }))
	return browser
}

func (p *Program) keys() *cobra.Command {
	keys := &cobra.Command{Use: "key", Short: "Make, list and revoke API keys, and rotate the master key"}
	var role string
	var agents []string
	create := command("create NAME", "Make an API key and print it, once", 1, func(c *cobra.Command, args []string) error {
		key, err := p.Offline(p.config).CreateKey(c.Context(), agent.Key{Name: args[0], Role: agent.Role(role), Agents: agents})
		return p.print(err, "%s\n", key)
	})
	create.Flags().StringVar(&role, "role", "owner", "owner, admin or viewer")
	create.Flags().StringSliceVar(&agents, "agents", []string{"*"}, "agent ids, or * for all")
	keys.AddCommand(create,
		command("list", "List API keys", 0, p.listKeys),
		command("revoke ID", "Revoke an API key", 1, func(c *cobra.Command, args []string) error {
			return p.Offline(p.config).DeleteKey(c.Context(), args[0])
		}),
		command("rotate", "Replace the master key and seal every credential anew; the server must be stopped", 0,
			func(c *cobra.Command, _ []string) error {
				n, err := p.Offline(p.config).RotateKey()
				return p.print(err, "the master key was replaced; %d credentials were sealed anew\n", n)
			}))
	return keys
}

// print writes what a command came to, unless it failed.
func (p *Program) print(failed error, format string, args ...any) error {
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintf(p.Out, format, args...)
	return err
}

// doctor prints what was found, and fails when something is wrong.
func (p *Program) doctor(c *cobra.Command, _ []string) error {
	findings, err := p.Offline(p.config).Doctor()
	findings = append(findings, p.Browser(p.config).Doctor(c.Context())...)
	wrong := 0
	for _, f := range findings {
		mark := "ok"
		if !f.OK {
			mark, wrong = "!!", wrong+1
		}
		fmt.Fprintf(p.Out, "%s  %s: %s\n", mark, f.Subject, f.Message)
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d of %d findings need attention", wrong, len(findings))
	}
	return err
}

func (p *Program) listKeys(c *cobra.Command, _ []string) error {
	keys, err := p.Offline(p.config).Keys(c.Context())
	for _, k := range keys {
		fmt.Fprintf(p.Out, "%s  %s…  %s  %s  %s\n", k.ID, k.Prefix, k.Role, strings.Join(k.Agents, ","), k.Name)
	}
	return err
}

func command(use, short string, args int, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args), RunE: run}
}
