package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent/cli/client"
)

// Cluster is what the commands can do with the database of a cluster.
type Cluster interface {
	// Import adds the agents of a data folder that no server has open, and returns
	// how many.
	Import(ctx context.Context, folder string) (int, error)
	// Export writes all agents to a data folder, and returns how many.
	Export(ctx context.Context, folder string) (int, error)
	// Recover restores, from a stopped server's folder, agents of which the database
	// has lost commits, and returns how many.
	Recover(ctx context.Context, folder string) (int, error)
	// Continue lets the servers continue with the state of the database.
	Continue(ctx context.Context) error
	Close()
}

// NodeURL returns the URL at which the other servers of a cluster reach this one.
func (c *Config) NodeURL(listener net.Addr) (string, error) {
	if c.ClusterURL != "" {
		u, err := url.Parse(c.ClusterURL)
		if err != nil ||
			u.Scheme != "http" && u.Scheme != "https" ||
			u.Host == "" ||
			u.Path != "" && u.Path != "/" ||
			u.RawQuery != "" ||
			u.User != nil {
			return "", errors.New("cluster_url must be a URL like http://10.0.0.1:8787")
		}
		return u.Scheme + "://" + u.Host, nil
	}
	at, err := netip.ParseAddrPort(listener.String())
	if err == nil && at.Addr().IsUnspecified() {
		err = fmt.Errorf(
			"the other servers of the cluster cannot reach this one at %s: set --cluster-url, or --addr to one address",
			at,
		)
	}
	return "http://" + listener.String(), err
}

func (program *Program) cluster(root *cobra.Command) *cobra.Command {
	shows := []string{"cluster", "master-key"}
	all := &cobra.Command{
		Use:     "cluster",
		Short:   "Manage the servers of a cluster, import and export its agents",
		Example: "  satchel cluster status",
	}
	all.AddCommand(client.ClusterCommands(program.client())...)
	all.AddCommand(
		command{
			use:      "import DIR",
			short:    "Add the agents of a data folder, whose server is stopped, to the cluster",
			example:  "cluster import ./data",
			args:     1,
			settings: shows,
			run: program.withCluster(func(c *cobra.Command, cluster Cluster, folder string) error {
				n, err := cluster.Import(c.Context(), folder)
				return program.print(err, "agents added to the cluster: %d; its servers take them over\n", n)
			}),
		}.addTo(root),
		command{
			use:      "export DIR",
			short:    "Make a data folder of all agents of the cluster",
			example:  "cluster export ./data",
			args:     1,
			settings: shows,
			run: program.withCluster(func(c *cobra.Command, cluster Cluster, folder string) error {
				n, err := cluster.Export(c.Context(), folder)
				return program.print(
					err,
					"agents written to %[2]s: %[1]d; a server starts on it with the cluster's master "+
						"key, and without --cluster\n",
					n,
					folder,
				)
			}),
		}.addTo(root),
		command{
			use: "recover DIR",
			short: "Put agents that the database has lost commits of back into it, from the data " +
				"folder of a stopped server",
			example:  "cluster recover /srv/satchel",
			args:     1,
			settings: shows,
			run: program.withCluster(func(c *cobra.Command, cluster Cluster, folder string) error {
				n, err := cluster.Recover(c.Context(), folder)
				return program.print(
					err,
					"agents recovered: %d; the servers go on after \"satchel cluster resume\"\n",
					n,
				)
			}),
		}.addTo(root),
		command{
			use:      "resume",
			short:    "Have the servers go on after the database was restored or lost commits",
			example:  "cluster resume",
			settings: shows,
			run: program.withCluster(func(c *cobra.Command, cluster Cluster, _ string) error {
				return program.print(cluster.Continue(c.Context()), "the servers go on with what the database has\n")
			}),
		}.addTo(root),
	)
	return all
}

// withCluster returns run for commands that use the cluster's database and a folder.
func (program *Program) withCluster(
	run func(*cobra.Command, Cluster, string) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		switch {
		case program.config.Cluster == "":
			return errors.New("set --cluster or SATCHEL_CLUSTER to the URL of the cluster's database")
		case len(program.config.MasterKeys) == 0:
			return errors.New(
				"set SATCHEL_MASTER_KEY to that of the cluster; of a data folder it is in its file master.key",
			)
		}
		cluster, err := program.Cluster(c.Context(), program.config)
		if err != nil {
			return err
		}
		defer cluster.Close()
		return run(c, cluster, strings.Join(args, ""))
	}
}
