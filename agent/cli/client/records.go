package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// listing is a kind of records, with commands that list them, show one and delete one.
type listing struct {
	noun, name, path string // such as execution, executions, workflows/executions
	named            bool   // one is found by its name too
	deletes          string // what is deleted with one; "" if one cannot be deleted
	fields           []string
}

var (
	agentList = listing{
		noun:    "agent",
		name:    "agents",
		deletes: "with all its data",
		fields:  []string{"id", "name", "status", "description", "updated_at"},
	}
	sourceList = listing{
		noun:    "source",
		name:    "sources",
		path:    "sources",
		named:   true,
		deletes: "with its chunks",
		fields:  []string{"id", "name", "type", "status", "chunks", "updated_at", "error.message"},
	}
	workflowList = listing{
		noun:    "workflow",
		name:    "workflows",
		path:    "workflows",
		named:   true,
		deletes: "with its executions",
		fields:  []string{"id", "name", "status", "triggers", "version", "updated_at"},
	}
	executionList = listing{
		noun:   "execution",
		name:   "executions",
		path:   "workflows/executions",
		fields: []string{"id", "workflow", "status", "trigger", "created_at", "completed_at", "error.message"},
	}
	scheduleList = listing{
		noun:    "schedule",
		name:    "schedules",
		path:    "schedules",
		named:   true,
		deletes: "with its runs",
		fields:  []string{"id", "name", "status", "words", "next_run", "last_run"},
	}
	contactList = listing{
		noun:    "contact",
		name:    "contacts",
		path:    "contacts",
		named:   true,
		deletes: "with its tags and fields",
		fields:  []string{"id", "name", "email", "phone", "created_at"},
	}
	conversationList = listing{
		noun:    "conversation",
		name:    "conversations",
		path:    "conversations",
		deletes: "with its messages",
		fields:  []string{"id", "status", "contact.name", "last_message.content", "updated_at"},
	}
)

// manage returns the command that lists records, with its subcommands.
func (session *session) manage(list listing) *cobra.Command {
	limit := 0
	command := &cobra.Command{
		Use:     list.name,
		Short:   "List " + list.name + ", show or delete one",
		Args:    cobra.NoArgs,
		Example: "  satchel " + list.name,
		RunE: func(c *cobra.Command, _ []string) error {
			return session.printList(c.Context(), list, limit)
		},
	}
	limitFlag(command, &limit)
	command.AddCommand(session.recordCommand(list, "show", "", func(ctx context.Context, id string) error {
		return session.show(ctx, list, id)
	}))
	if list.deletes == "" {
		command.Short = "List " + list.name + ", newest first, or show one"
		return command
	}
	yes := false
	remove := session.recordCommand(list, "delete", " "+list.deletes, func(ctx context.Context, id string) error {
		if !yes && list.noun == "agent" && !session.confirm(id) {
			return errors.New("nothing was deleted")
		}
		return session.api.call(
			ctx,
			http.MethodDelete,
			session.listPath(list)+"/"+url.PathEscape(id),
			nil,
			nil,
			nil,
		)
	})
	if list.noun == "agent" {
		remove.Flags().BoolVar(&yes, "yes", false, "do not ask, at a terminal")
	}
	command.AddCommand(remove)
	return command
}

// recordCommand returns a command for one record.
func (session *session) recordCommand(
	list listing,
	verb, what string,
	run func(context.Context, string) error,
) *cobra.Command {
	article, name := "a ", list.noun+"-06f1q2s3t4v5a6b7c8d9"
	if strings.ContainsRune("aeiou", rune(list.noun[0])) {
		article = "an "
	}
	if what += ", by id"; list.named || list.path == "" {
		what += " or name"
	}
	command := &cobra.Command{
		Use:     verb + " " + strings.ToUpper(list.noun),
		Args:    cobra.ExactArgs(1),
		Short:   strings.ToUpper(verb[:1]) + verb[1:] + " " + article + list.noun + what,
		Example: "  satchel " + list.name + " " + verb + " " + name,
		RunE: func(c *cobra.Command, args []string) error {
			id, err := session.find(c.Context(), list, args[0])
			if err != nil {
				return err
			}
			return run(c.Context(), id)
		},
	}
	if list.named || list.path == "" {
		command.ValidArgsFunction = firstArgument(session.completeName(list))
	}
	return command
}

// confirm asks a person at a terminal whether to delete an agent with all its data. For
// programs the answer is yes.
func (session *session) confirm(name string) bool {
	if !session.isTerminal() || !IsTerminal(session.In) {
		return true
	}
	fmt.Fprintf(session.Notes, "Delete %s with all its data? Type yes: ", clean(name))
	line, _ := bufio.NewReader(session.In).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
}

// listPath returns the path of a list.
func (session *session) listPath(list listing) string {
	if list.path == "" {
		return "/agents"
	}
	return session.path(strings.Split(list.path, "/")...)
}

// find returns the id of a record, given by it or by a name that only one has. Agents are
// found by the server.
func (session *session) find(ctx context.Context, list listing, idOrName string) (string, error) {
	switch {
	case idOrName == "":
		return "", fmt.Errorf("the id of the %s is empty", list.noun)
	case !list.named || strings.HasPrefix(idOrName, list.noun+"-"):
		return idOrName, nil
	}
	found, err := session.api.list(
		ctx,
		session.listPath(list),
		list.name,
		url.Values{"search": {idOrName}},
		500,
	)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, r := range found {
		name, _ := r["name"].(string)
		if id, ok := r["id"].(string); ok && strings.EqualFold(name, idOrName) {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no %s is called %q; \"satchel %s\" lists them", list.noun, idOrName, list.name)
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf(
		"%d %s are called %q; name one by its id: %s",
		len(ids),
		list.name,
		idOrName,
		strings.Join(ids, ", "),
	)
}

func limitFlag(c *cobra.Command, limit *int) {
	c.Flags().IntVarP(limit, "limit", "n", 100, "how many at most")
}

func (session *session) printList(ctx context.Context, list listing, limit int) error {
	records, err := session.api.list(ctx, session.listPath(list), list.name, nil, limit)
	if err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, records)
	}
	if len(records) == 0 {
		fmt.Fprintln(session.Notes, "There are none.")
		return nil
	}
	if slices.Contains(list.fields, "workflow") {
		if err := session.nameWorkflows(ctx, records); err != nil {
			return err
		}
	}
	return writeTable(session.Out, records, columns(list.fields...))
}

// nameWorkflows gives records with the id of a workflow its name, for people. A workflow
// that was deleted keeps its id.
func (session *session) nameWorkflows(ctx context.Context, records []record) error {
	workflows, err := session.api.list(ctx, session.listPath(workflowList), workflowList.name, nil, 1000)
	names := byID(workflows)
	for _, r := range records {
		id := r["workflow_id"]
		r["workflow"] = id
		if w := names[fmt.Sprint(id)]; w != nil {
			r["workflow"] = w["name"]
		}
	}
	return err
}

func (session *session) show(ctx context.Context, list listing, id string) error {
	var r record
	if err := session.api.call(
		ctx,
		http.MethodGet,
		session.listPath(list)+"/"+url.PathEscape(id),
		nil,
		nil,
		&r,
	); err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, r)
	}
	if r["workflow_id"] != nil {
		if err := session.nameWorkflows(ctx, []record{r}); err != nil {
			return err
		}
	}
	return writeRecord(session.Out, r)
}
