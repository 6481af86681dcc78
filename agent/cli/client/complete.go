package client

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// Limits of a completion, for which a shell waits.
const (
	maxCompletions    = 200
	completionTimeout = 2 * time.Second
)

// completeAgent completes the name of an agent.
func (session *session) completeAgent(
	c *cobra.Command,
	_ []string,
	_ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return session.completeName(agentList)(c, nil, "")
}

// completeName completes the name of a record of a list.
func (session *session) completeName(list listing) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return session.complete(c, func(ctx context.Context) ([]record, error) {
			return session.api.list(ctx, session.listPath(list), list.name, nil, maxCompletions)
		})
	}
}

// firstArgument completes the first argument by one function, and others with files.
func firstArgument(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return f(c, args, text)
	}
}

// complete returns the names of records of the server, or none if it does not answer
// in time.
func (session *session) complete(
	command *cobra.Command,
	list func(context.Context) ([]record, error),
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if session.connect(command, nil) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
	defer cancel()
	session.api.note = func(string) {}
	records, err := list(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, 0, len(records))
	for _, r := range records {
		if name, _ := r["name"].(string); name != "" {
			names = append(names, clean(name))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
