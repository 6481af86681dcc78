package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Options are what the commands need from the program.
type Options struct {
	Getenv func(string) string
	In     io.Reader
	Out    io.Writer
	Notes  io.Writer // progress and hints, apart from results
}

// session is one command line that calls a server.
type session struct {
	Options
	server, keyFile, agent string
	json                   bool

	wait func(context.Context, time.Duration) error
	api  *api
}

// DefaultServer is called when the user names none.
const DefaultServer = "http://127.0.0.1:8787"

// Group is the group of the commands in the help of the program.
const Group = "client"

// Commands returns the commands that call a server.
func Commands(o Options) []*cobra.Command {
	return commands(&session{Options: o, wait: sleep})
}

func commands(s *session) []*cobra.Command {
	all := []*cobra.Command{
		s.agents(), s.sources(), s.ask(), s.search(), s.run(), s.logs(), s.sql(), s.call(), s.export(), s.apply(),
		s.importCommand(),
	}
	for _, k := range []listing{workflowList, executionList, scheduleList, contactList, conversationList} {
		all = append(all, s.manage(k))
	}
	for _, c := range all {
		c.GroupID = Group
		s.calls(c)
		switch c.Name() {
		case "agents", "export":
		case "apply":
			s.agentFlag(c, "agent to apply to, by id or name (default: the one that the folder was exported from)")
		default:
			s.agentFlag(c, "agent, by id or name (SATCHEL_AGENT; default \"default\")")
		}
	}
	return all
}

func (s *session) agentFlag(c *cobra.Command, usage string) {
	c.PersistentFlags().StringVarP(&s.agent, "agent", "a", "", usage)
	_ = c.RegisterFlagCompletionFunc("agent", s.completeAgent)
}

// calls adds to a command what all commands that call a server have in common.
func (s *session) calls(c *cobra.Command) {
	c.PersistentPreRunE = s.connect
	f := c.PersistentFlags()
	f.StringVar(&s.server, "server", "", "address of the server (SATCHEL_SERVER; default "+DefaultServer+")")
	f.StringVar(
		&s.keyFile,
		"key-file",
		"",
		"file with the API key (SATCHEL_API_KEY_FILE; or SATCHEL_API_KEY, the key itself)",
	)
	f.BoolVar(&s.json, "json", false, "print JSON, for programs")
}

// connect fills in what the flags left open.
func (s *session) connect(c *cobra.Command, _ []string) error {
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	s.keyFile = first(s.keyFile, s.Getenv("SATCHEL_API_KEY_FILE"))
	key, err := readKey(s.keyFile, s.Getenv("SATCHEL_API_KEY"))
	if err != nil {
		return err
	}
	s.api, err = newAPI(first(s.server, s.Getenv("SATCHEL_SERVER"), DefaultServer), key)
	if err != nil {
		return err
	}
	s.api.wait = s.wait
	s.api.note = func(text string) {
		fmt.Fprintln(s.Notes, text)
	}
	if s.agent == "" && c.Name() != "apply" { // a folder says which agent it is of
		s.agent = s.Getenv("SATCHEL_AGENT")
	}
	return nil
}

// path returns the path of a route of the agent.
func (s *session) path(parts ...string) string {
	return agentPath(s.agent, parts...)
}

func agentPath(name string, parts ...string) string {
	if name == "" {
		name = "default"
	}
	path := "/agents/" + url.PathEscape(name)
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

func (s *session) agents() *cobra.Command {
	description := ""
	c := s.manage(agentList)
	c.Short = "List agents, create, show or delete one"
	create := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create an agent",
		Example: "  satchel agents create bakery",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var made record
			err := s.api.call(
				c.Context(),
				http.MethodPost,
				"/agents",
				nil,
				map[string]any{"name": args[0], "description": description},
				&made,
			)
			return s.printCreated(err, made)
		},
	}
	create.Flags().StringVar(&description, "description", "", "what it is for")
	c.AddCommand(create)
	return c
}

// printCreated prints a new record: its id, or all of it as JSON.
func (s *session) printCreated(err error, made record) error {
	switch {
	case err != nil:
		return err
	case s.json:
		return writeJSON(s.Out, made)
	}
	_, err = fmt.Fprintln(s.Out, made.text("id"))
	return err
}

// isTerminal reports whether notes go to a person who sees them at once.
func (s *session) isTerminal() bool {
	return IsTerminal(s.Notes)
}

// IsTerminal reports whether a person reads or writes a stream. The null device, which is
// what programs without a terminal often have, is not one.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	null, _ := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null)
}

// argument returns text from the command line; - is the standard input, @FILE a
// file.
func (s *session) argument(text string) (string, error) {
	const most = 8 << 20
	switch {
	case text == "-":
		raw, err := io.ReadAll(io.LimitReader(s.In, most))
		return string(raw), err
	case strings.HasPrefix(text, "@"):
		raw, err := os.ReadFile(text[1:])
		return string(raw), err
	}
	return text, nil
}
