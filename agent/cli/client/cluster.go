package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// How often a server that is being drained is polled, and for how long at most:
// longer than the server tries.
const (
	drainInterval = time.Second
	maxDrainPolls = 15 * 60
)

// ClusterCommands returns the commands that manage the cluster of a server.
func ClusterCommands(o Options) []*cobra.Command {
	return clusterCommands(&session{Options: o, wait: sleep})
}

func clusterCommands(s *session) []*cobra.Command {
	all := []*cobra.Command{s.clusterStatus(), s.clusterMove(), s.clusterDrain()}
	for _, c := range all {
		s.calls(c)
	}
	return all
}

func (session *session) clusterStatus() *cobra.Command {
	agents, limit := false, 0
	command := &cobra.Command{
		Use:     "status",
		Short:   "List the servers of the cluster, or its agents with their servers",
		Example: "  satchel cluster status",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			nodes, err := session.nodes(c.Context())
			switch {
			case err != nil:
				return err
			case agents:
				return session.printPlaces(c.Context(), nodes, limit)
			case session.json:
				return writeJSON(session.Out, nodes)
			}
			for _, n := range nodes {
				if n["state"] = nodeState(n); n["state"] != "gone" {
					n["lag"] = n.text("lag_ms") + " ms"
				}
			}
			return writeTable(
				session.Out,
				nodes,
				columns("name", "state", "agents", "lag", "seen_at", "version", "url", "id"),
			)
		},
	}
	command.Flags().BoolVar(&agents, "agents", false, "list the agents")
	limitFlag(command, &limit)
	return command
}

func (session *session) nodes(ctx context.Context) ([]record, error) {
	var answer struct{ Nodes []record }
	err := session.api.call(ctx, http.MethodGet, "/cluster", nil, nil, &answer)
	return answer.Nodes, err
}

// nodeState returns a server's state in one or two words.
func nodeState(n record) string {
	switch {
	case n["alive"] != true:
		return "gone"
	case n["leaving"] != true:
		return "alive"
	case n["reason"] == "disk_full":
		return "disk full"
	case n["reason"] == "stopping":
		return "stopping"
	}
	return "draining"
}

func (session *session) printPlaces(ctx context.Context, nodes []record, limit int) error {
	agents, err := session.api.list(ctx, "/cluster/agents", "agents", nil, limit)
	if err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, agents)
	}
	for _, a := range agents {
		a["server"] = a["node"] // of one that left long ago, or "stopped"
		if i := slices.IndexFunc(nodes, func(n record) bool {
			return n["id"] == a["node"]
		}); i >= 0 {
			a["server"], a["url"] = nodes[i]["name"], nodes[i]["url"] // the name need not be unique
		}
	}
	return writeTable(session.Out, agents, columns("name", "id", "server", "url"))
}

func (session *session) clusterMove() *cobra.Command {
	return &cobra.Command{
		Use:     "move AGENT SERVER",
		Short:   "Move an agent to another server of the cluster",
		Example: "  satchel cluster move bakery node-2",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			path := "/cluster/agents/" + url.PathEscape(args[0]) + "/move"
			return session.printDone(
				session.api.call(
					c.Context(),
					http.MethodPost,
					path,
					nil,
					map[string]any{"node": args[1]},
					nil,
				),
				"%s is with %s now",
				args[0],
				args[1],
			)
		},
	}
}

func (session *session) clusterDrain() *cobra.Command {
	noWait := false
	command := &cobra.Command{
		Use:     "drain SERVER",
		Short:   "Move all agents of a server to the other servers of the cluster",
		Example: "  satchel cluster drain node-2",
		Args:    cobra.ExactArgs(1),
		Long: "Move all agents of a server to the other servers of the cluster.\n\n" +
			"The server gets no more agents until it is restarted, and can be stopped without delaying requests.",
		RunE: func(c *cobra.Command, args []string) error {
			record, err := session.node(c.Context(), args[0])
			if err != nil {
				return err
			}
			id, name := record.text("id"), record.text("name")
			err = session.api.call(
				c.Context(),
				http.MethodPost,
				"/cluster/nodes/"+url.PathEscape(id)+"/drain",
				nil,
				nil,
				nil,
			)
			if err != nil || noWait {
				return session.printDone(err, "%s gives its agents to the other servers", name)
			}
			return session.printDone(session.awaitDrained(c.Context(), id), "%s has no agents any more", name)
		},
	}
	command.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until the agents have moved")
	return command
}

// node returns the server that is alive and has this id or URL, or is the only one
// with this name.
func (session *session) node(ctx context.Context, ref string) (record, error) {
	nodes, err := session.nodes(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var named []record
	for _, n := range nodes {
		switch {
		case n["alive"] != true:
			continue
		case ref == n["id"] || ref == n["url"]:
			return n, nil
		case ref == n["name"]:
			named = append(named, n)
		}
		names = append(names, n.text("name"))
	}
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("there is no server %q; alive are %s", ref, strings.Join(names, ", "))
	case 1:
		return named[0], nil
	}
	return nil, fmt.Errorf("%d servers have the name %q: give the id or URL of one", len(named), ref)
}

// awaitDrained waits until a server has no agents left.
func (session *session) awaitDrained(ctx context.Context, id string) error {
	last := -1
	for range maxDrainPolls {
		nodes, err := session.nodes(ctx)
		if err != nil {
			return err
		}
		remaining := 0
		if i := slices.IndexFunc(nodes, func(n record) bool {
			return n["id"] == id && n["alive"] == true
		}); i >= 0 {
			remaining, _ = strconv.Atoi(nodes[i].text("agents"))
		}
		if remaining == 0 {
			return nil
		}
		if remaining != last && session.isTerminal() {
			fmt.Fprintf(session.Notes, "%d agents left\n", remaining)
		}
		last = remaining
		if err := session.api.wait(ctx, drainInterval); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d agents were not given away; the server's log says why", last)
}

// printDone prints that a command succeeded, or with --json an object, unless err is
// set, which it returns.
func (session *session) printDone(err error, format string, args ...any) error {
	switch {
	case err != nil:
		return err
	case session.json:
		return writeJSON(session.Out, record{"success": true})
	}
	_, err = fmt.Fprintln(session.Out, clean(fmt.Sprintf(format, args...)))
	return err
}
