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

func commands(session *session) []*cobra.Command {
	all := []*cobra.Command{
		session.agents(), session.sources(), session.ask(), session.search(), session.run(), session.logs(),
		session.sql(), session.call(), session.export(), session.apply(), session.importCommand(),
	}
	for _, k := range []listing{workflowList, executionList, scheduleList, contactList, conversationList} {
		all = append(all, session.manage(k))
	}
	for _, c := range all {
		c.GroupID = Group
		session.calls(c)
		switch c.Name() {
		case "agents", "export":
		case "apply":
			session.agentFlag(
				c,
				"agent to apply to, by id or name (default: the one that the folder was exported from)",
			)
		default:
			session.agentFlag(c, "agent, by id or name (SATCHEL_AGENT; default \"default\")")
		}
	}
	return all
}

func (session *session) agentFlag(c *cobra.Command, usage string) {
	c.PersistentFlags().StringVarP(&session.agent, "agent", "a", "", usage)
	_ = c.RegisterFlagCompletionFunc("agent", session.completeAgent)
}

// calls adds to a command what all commands that call a server have in common.
func (session *session) calls(c *cobra.Command) {
	c.PersistentPreRunE = session.connect
	f := c.PersistentFlags()
	f.StringVar(&session.server, "server", "", "address of the server (SATCHEL_SERVER; default "+DefaultServer+")")
	f.StringVar(
		&session.keyFile,
		"key-file",
		"",
		"file with the API key (SATCHEL_API_KEY_FILE; or SATCHEL_API_KEY, the key itself)",
	)
	f.BoolVar(&session.json, "json", false, "print JSON, for programs")
}

// connect fills in what the flags left open.
func (session *session) connect(command *cobra.Command, _ []string) error {
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	session.keyFile = first(session.keyFile, session.Getenv("SATCHEL_API_KEY_FILE"))
	key, err := readKey(session.keyFile, session.Getenv("SATCHEL_API_KEY"))
	if err != nil {
		return err
	}
	session.api, err = newAPI(first(session.server, session.Getenv("SATCHEL_SERVER"), DefaultServer), key)
	if err != nil {
		return err
	}
	session.api.wait = session.wait
	session.api.note = func(text string) {
		fmt.Fprintln(session.Notes, text)
	}
	if session.agent == "" && command.Name() != "apply" { // a folder says which agent it is of
		session.agent = session.Getenv("SATCHEL_AGENT")
	}
	return nil
}

// path returns the path of a route of the agent.
func (session *session) path(parts ...string) string {
	return agentPath(session.agent, parts...)
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

func (session *session) agents() *cobra.Command {
	description := ""
	command := session.manage(agentList)
	command.Short = "List agents, create, show or delete one"
	create := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create an agent",
		Example: "  satchel agents create bakery",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var made record
			err := session.api.call(
				c.Context(),
				http.MethodPost,
				"/agents",
				nil,
				map[string]any{"name": args[0], "description": description},
				&made,
			)
			return session.printCreated(err, made)
		},
	}
	create.Flags().StringVar(&description, "description", "", "what it is for")
	command.AddCommand(create)
	return command
}

// printCreated prints a new record: its id, or all of it as JSON.
func (session *session) printCreated(err error, made record) error {
	switch {
	case err != nil:
		return err
	case session.json:
		return writeJSON(session.Out, made)
	}
	_, err = fmt.Fprintln(session.Out, made.text("id"))
	return err
}

// isTerminal reports whether notes go to a person who sees them at once.
func (session *session) isTerminal() bool {
	return IsTerminal(session.Notes)
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
func (session *session) argument(text string) (string, error) {
	const most = 8 << 20
	switch {
	case text == "-":
		raw, err := io.ReadAll(io.LimitReader(session.In, most))
		return string(raw), err
	case strings.HasPrefix(text, "@"):
		raw, err := os.ReadFile(text[1:])
		return string(raw), err
	}
	return text, nil
}
