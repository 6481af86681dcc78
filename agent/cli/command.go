package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
	"satchel/agent/cli/client"
)

// Offline is what commands other than serve can do with the data folder.
type Offline interface {
	Doctor() ([]agent.Finding, error)
	Backup(idOrName, to string) error
	Restore(ctx context.Context, from string) (id string, err error)
	Access() (agent.Access, error)
	CreateKey(ctx context.Context, k agent.Key, choose func(agent.Access) (*agent.Role, error)) (key string, err error)
	Keys(context.Context) ([]*agent.Key, error)
	DeleteKey(ctx context.Context, id string) error
	RotateKey() (credentials int, err error)
}

// Browser is what the commands can do with the browser for sessions.
type Browser interface {
	Install(ctx context.Context, steps io.Writer) error
	Doctor(context.Context) []agent.Finding
}

// Program is what the command line can run; main fills it in. The functions
// receive the effective settings.
type Program struct {
	Version Version
	Getenv  func(string) string
	In      io.Reader
	Out     io.Writer
	Notes   io.Writer // hints and progress, apart from results
	Serve   func(context.Context, *Config) error
	Offline func(*Config) Offline
	Browser func(*Config) Browser
	Models  func(*Config) Models
	System  func(context.Context) []agent.Finding // what doctor says of this machine

	Cluster  func(context.Context, *Config) (Cluster, error)
	Replicas func(target string) (Replicas, error) // an error completes the sentence "TARGET …"

	config *Config
}

// Run parses one command line, loads the settings and runs the command. The
// default command is serve.
func (program *Program) Run(ctx context.Context, args []string) error {
	const short = "Self-hosted agent automation: one program, one file for each agent"
	root := &cobra.Command{
		Use:     "satchel",
		Short:   short,
		Example: "  satchel --data /srv/satchel",
		Long: short +
			".\n\nWithout a command it starts the server; \"satchel serve --help\" shows the settings.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		PersistentPreRunE: program.load,
		RunE: func(c *cobra.Command, args []string) error {
			if wantsVersion(c) {
				return program.print(nil, "satchel %s\n", program.Version)
			}
			return program.serve(c, args)
		},
	}
	// Cobra's own flag needs a template for this, which would make the binary larger
	// by a tenth: the linker keeps every method then.
	root.Flags().BoolP(versionFlag, "v", false, "version of satchel")
	for _, s := range append([]Setting{configFile}, table...) {
		source := s.Env
		if s.Default != "" {
			source += "; default " + s.Default
		}
		root.PersistentFlags().String(s.Flag, "", s.Usage+" ("+source+")")
		f := root.PersistentFlags().Lookup(s.Flag)
		f.Hidden = true // every command accepts it, and shows it if it uses it
		if s.Bool {
			f.NoOptDefVal = "true"
		}
	}
	const local = "local"
	root.AddGroup(&cobra.Group{ID: local, Title: "Serve, and work on this machine's data folder:"}, &cobra.Group{
		ID:    client.Group,
		Title: "Call a server, here or elsewhere:",
	})
	for _, c := range program.commands(root) {
		c.GroupID = local
		root.AddCommand(c)
	}
	root.AddCommand(client.Commands(program.client())...)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	})
	explainArguments(root)
	incomplete := explainGroups(root)
	root.SetArgs(args)
	root.SetOut(program.Out)
	err := root.ExecuteContext(ctx)
	return cmp.Or(err, *incomplete)
}

// explainGroups makes it an error to run a command that only has subcommands, or to
// ask for help on an unknown command, where Cobra prints help and succeeds. The
// returned error is set once root has run.
func explainGroups(root *cobra.Command) *error {
	var failed error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if wanted, _ := c.Flags().GetBool("help"); wanted || c.Runnable() {
			help(c, args)
			return
		}
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		failed = fmt.Errorf("usage: %s %s", c.CommandPath(), strings.Join(names, "|"))
		if rest := c.Flags().Args(); len(rest) > 0 {
			failed = unknownCommand(c, rest[0])
		}
	})
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // settings do not matter
		c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(about, cmp.Or(slices.Concat(rest, args)...))
			}
			about.InitDefaultHelpFlag()
			return errors.Join(about.Flags().Set("help", "true"), about.Help())
		}
	}
	return &failed
}

// unknownCommand returns the error for a name that no command below c has.
func unknownCommand(c *cobra.Command, name string) error {
	err := fmt.Errorf("unknown command %q for %q", name, c.CommandPath())
	if similar := c.SuggestionsFor(name); len(similar) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(similar, " or "))
	}
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}

// explainArguments makes errors about the arguments of a command, and of its
// subcommands, include its usage.
func explainArguments(command *cobra.Command) {
	check := command.Args
	if command.SuggestionsMinimumDistance = 2; check != nil {
		command.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			switch {
			case err == nil:
				return nil
			case !c.HasSubCommands() || len(args) == 0:
				return fmt.Errorf("usage: %s", c.UseLine())
			}
			return unknownCommand(c, args[0])
		}
	}
	for _, sub := range command.Commands() {
		explainArguments(sub)
	}
}

func (program *Program) client() client.Options {
	return client.Options{
		Getenv: program.Getenv,
		In:     program.In,
		Out:    program.Out,
		Notes:  program.Notes,
	}
}

const versionFlag = "version"

// wantsVersion reports whether the version is requested, whatever the settings
// are.
func wantsVersion(c *cobra.Command) bool {
	f := c.LocalNonPersistentFlags().Lookup(versionFlag)
	return f != nil && f.Changed
}

func (program *Program) load(c *cobra.Command, _ []string) (err error) {
	if wantsVersion(c) {
		return nil
	}
	lookup := func(name string) (string, bool) {
		f := c.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return "", false
		}
		return f.Value.String(), true
	}
	program.config, err = Load(lookup, program.Getenv, DefaultFile)
	return err
}

func (program *Program) serve(c *cobra.Command, _ []string) error {
	return program.Serve(c.Context(), program.config)
}

// The settings that commands other than serve use.
var (
	fileSettings    = []string{"data"}
	keySettings     = []string{"data", "master-key"}
	browserSettings = []string{"chromium", "browser-driver", "browser-cdp"}
)

func (program *Program) commands(root *cobra.Command) []*cobra.Command {
	var all []string
	for _, s := range table {
		all = append(all, s.Flag)
	}
	version := command{
		use:     "version",
		short:   "Print the version",
		example: "version",
		run: func(*cobra.Command, []string) error {
			return program.print(nil, "%s\n", program.Version)
		},
	}.addTo(root)
	upgrade := command{
		use:     "upgrade",
		short:   "Say where newer versions are and how to install one",
		example: "upgrade",
		run: func(*cobra.Command, []string) error {
			return program.print(nil, "%s", program.Version.upgrade())
		},
	}.addTo(root)
	for _, c := range []*cobra.Command{version, upgrade} {
		c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // settings do not matter
	}
	return []*cobra.Command{
		command{
			use:      "serve",
			short:    "Serve API and console until stopped",
			example:  "serve --addr 127.0.0.1:9000",
			settings: all,
			run:      program.serve,
		}.addTo(root),
		command{
			use:      "open FILE",
			short:    "Serve one agent's file from where it lies, as one opens a document",
			example:  "open bakery.db",
			args:     1,
			settings: all,
			run:      program.open,
			long: "Changes are in the file. Its credentials can be read with the master key of the server that " +
				"it is from, in SATCHEL_MASTER_KEY.\nThe first time, the agent starts paused, as a copy does.",
		}.addTo(root),
		command{
			use:      "config",
			short:    "Print the settings in force and where each comes from",
			example:  "config --addr 127.0.0.1:9000",
			settings: []string{},
			long:     "It accepts the flags of \"satchel serve\".",
			run: func(*cobra.Command, []string) error {
				return program.config.Print(program.Out)
			},
		}.addTo(root),
		program.doctorCommand(root),
		command{
			use:      "backup AGENT FILE",
			short:    "Copy an agent, by id or name, to a file; the server may run",
			example:  "backup support-bot support-bot.db",
			args:     2,
			settings: fileSettings,
			run:      program.withDataFolder(program.backup),
		}.addTo(root),
		program.restoreCommand(root),
		program.replicas(root),
		program.cluster(root),
		program.keys(root),
		program.models(root),
		program.browser(root),
		version,
		upgrade,
	}
}

// withDataFolder returns run for commands that need a data folder with agents.
func (program *Program) withDataFolder(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		folder, err := filepath.Abs(program.config.Data)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(folder, "agents")); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf(
				"there are no agents in %s; set the server's data folder with --data or SATCHEL_DATA",
				folder,
			)
		}
		return run(c, args)
	}
}

func (program *Program) backup(_ *cobra.Command, args []string) error {
	return program.Offline(program.config).Backup(args[0], args[1])
}

func (program *Program) browser(root *cobra.Command) *cobra.Command {
	browser := &cobra.Command{
		Use:     "browser",
		Short:   "Install the browser for sessions",
		Example: "  satchel browser install",
	}
	browser.AddCommand(command{
		use:      "install",
		short:    "Find Chromium and its driver, or download and install them",
		example:  "browser install --chromium /usr/bin/chromium",
		settings: browserSettings,
		run: func(c *cobra.Command, _ []string) error {
			return program.Browser(program.config).Install(c.Context(), program.Out)
		},
	}.addTo(root))
	return browser
}

// print prints the outcome of a command, unless it failed.
func (program *Program) print(failed error, format string, args ...any) error {
	if failed != nil {
		return failed
	}
	_, err := fmt.Fprintf(program.Out, format, args...)
	return err
}

func (program *Program) doctorCommand(root *cobra.Command) *cobra.Command {
	var probe bool
	c := command{
		use:      "doctor",
		short:    "Examine the data folder, the browser and this machine without changing them",
		example:  "doctor --data /srv/satchel",
		settings: slices.Concat([]string{"addr", "replicate"}, keySettings, browserSettings),
		run: func(c *cobra.Command, args []string) error {
			if probe {
				return client.Probe(c.Context(), program.config.LocalAddr())
			}
			return program.doctor(c, args)
		},
	}.addTo(root)
	c.Flags().BoolVar(&probe, "probe", false, "only check whether the server at --addr is ready; for health checks")
	return c
}

// doctor prints what was found, and fails when something is wrong.
func (program *Program) doctor(command *cobra.Command, _ []string) error {
	findings, err := program.Offline(program.config).Doctor()
	// else the finding about the default agent's file says why
	if access, err := program.Offline(program.config).Access(); err == nil {
		findings = append(findings, agent.Finding{
			OK:      true,
			Subject: "access",
			Message: program.access(access),
		})
	}
	findings = append(findings, program.Browser(program.config).Doctor(command.Context())...)
	findings = append(findings, program.System(command.Context())...)
	if target := program.config.Replicate; target != "" {
		finding := agent.Finding{Subject: "replicate", Message: target}
		if replicas, e := program.Replicas(target); e != nil {
			finding.Message += " " + e.Error()
		} else {
			finding = replicas.Doctor(command.Context())
		}
		findings = append(findings, finding)
	}
	wrong := 0
	for _, f := range findings {
		mark := "ok"
		if !f.OK {
			mark, wrong = "!!", wrong+1
		}
		fmt.Fprintf(program.Out, "%s  %s: %s\n", mark, f.Subject, f.Message)
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d of %d findings need attention", wrong, len(findings))
	}
	return err
}

// command describes a command of the program.
type command struct {
	use, short, long string
	example          string   // without the program's name
	args             int      // number of arguments
	settings         []string // flags of the settings that it uses, in addition to --config; nil: it reads none
	run              func(*cobra.Command, []string) error
}

// addTo adds the command to root, showing the flags that it uses.
func (d command) addTo(root *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:     d.use,
		Short:   d.short,
		Example: "  satchel " + d.example,
		Args:    cobra.ExactArgs(d.args),
		RunE:    d.run,
	}
	if d.long != "" {
		c.Long = d.short + ".\n\n" + d.long
	}
	names := d.settings
	if names != nil {
		names = slices.Concat(names, []string{configFile.Flag})
	}
	for _, name := range names {
		shown := *root.PersistentFlags().Lookup(name)
		shown.Hidden = false
		c.Flags().AddFlag(&shown)
	}
	return c
}
