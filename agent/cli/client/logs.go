package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// followInterval keeps far below the limit of requests a minute.
const followInterval = 2 * time.Second

func (session *session) logs() *cobra.Command {
	var follow bool
	var limit int
	var levels, sources []string
	c := &cobra.Command{
		Use:     "logs",
		Short:   "Print an agent's log, oldest first",
		Example: "  satchel logs --follow --level warn --level error --agent bakery",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return session.printLogs(c.Context(), url.Values{"level": levels, "source": sources}, limit, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "continue with new entries")
	c.Flags().IntVarP(&limit, "limit", "n", 50, "maximum number of entries, the newest")
	c.Flags().StringArrayVar(&levels, "level", nil, "debug, info, warn or error; may be repeated")
	c.Flags().StringArrayVar(&sources, "source", nil, "source of the entries; may be repeated")
	return c
}

func (session *session) printLogs(ctx context.Context, filter url.Values, limit int, follow bool) error {
	filter.Set("sort", "created_at")
	filter.Set("order", "desc")
	newest, err := session.api.list(ctx, session.path("logs"), "logs", filter, limit)
	if err != nil {
		return err
	}
	slices.Reverse(newest)
	if !follow && session.json {
		return writeJSON(session.Out, newest)
	}
	for _, entry := range newest {
		if err := session.printLog(entry); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return session.followLogs(ctx, filter, newest)
}

// followLogs prints new entries until ctx is done, even if the server is down
// for a moment. Entries with the newest time are requested again, because there
// may be more with the same time.
func (session *session) followLogs(ctx context.Context, filter url.Values, shown []record) error {
	filter.Set("order", "asc")
	for away := false; ; {
		seen, from := map[string]bool{}, ""
		for _, entry := range shown {
			from, _ = entry["created_at"].(string)
			seen[entry.text("id")] = true
		}
		if from != "" {
			filter.Set("from", from)
		}
		if err := session.api.wait(ctx, followInterval); err != nil {
			return err
		}
		entries, err := session.api.list(ctx, session.path("logs"), "logs", filter, 1000)
		var answered *Failure
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &answered):
			return err
		case err != nil && !away:
			fmt.Fprintf(session.Notes, "%v; trying again\n", err)
		}
		if away = err != nil; away {
			continue
		}
		for _, entry := range entries {
			if !seen[entry.text("id")] {
				if err := session.printLog(entry); err != nil {
					return err
				}
			}
		}
		if len(entries) > 0 {
			shown = entries
		}
	}
}

func (session *session) printLog(entry record) error {
	if session.json {
		return json.NewEncoder(session.Out).Encode(entry)
	}
	data := ""
	if fields, _ := entry["data"].(map[string]any); len(fields) > 0 {
		raw, _ := json.Marshal(fields)
		data = "  " + clean(string(raw))
	}
	message, _ := entry["message"].(string)
	_, err := fmt.Fprintf(
		session.Out,
		"%s  %-5s  %s  %s%s\n",
		entry.text("created_at"),
		entry.text("level"),
		entry.text("source"),
		clean(message),
		data,
	)
	return err
}

func (session *session) sql() *cobra.Command {
	csv, readOnly := false, false
	command := &cobra.Command{
		Use:   "sql STATEMENT [PARAMETER...]",
		Short: "Run one SQL statement on an agent's tables",
		Args:  cobra.MinimumNArgs(1),
		Long: "Run one SQL statement on an agent's tables.\n\nSTATEMENT may be - for standard input, or @FILE. " +
			"Each ? takes a parameter: numbers, true, false and null have their types, everything else is text.",
		Example: `  satchel sql "SELECT name, email FROM contacts WHERE created_at > ?" 2026-01-01 --agent bakery`,
		RunE: func(c *cobra.Command, args []string) error {
			statement, err := session.argument(args[0])
			if err != nil {
				return err
			}
			return session.execSQL(
				c.Context(),
				map[string]any{
					"query":     statement,
					"params":    parameters(args[1:]),
					"read_only": readOnly,
				},
				csv,
			)
		},
	}
	command.Flags().BoolVar(&csv, "csv", false, "print CSV")
	command.Flags().BoolVar(&readOnly, "read-only", false, "refuse a statement that would change data")
	return command
}

// parameters reads the values of placeholders.
func parameters(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
		if _, err := strconv.ParseFloat(text, 64); (err == nil ||
			text == "true" ||
			text == "false" ||
			text == "null") &&
			json.Valid([]byte(text)) {
			values[i] = json.RawMessage(text)
		}
	}
	return values
}

func (session *session) execSQL(ctx context.Context, body map[string]any, csv bool) error {
	call := request{
		method: http.MethodPost,
		path:   session.path("sql", "execute"),
		body:   body,
	}
	if csv {
		return session.copy(ctx, call)
	}
	raw, err := session.api.raw(ctx, call)
	if err != nil {
		return err
	}
	if session.json {
		return writeJSON(session.Out, raw)
	}
	var out struct {
		Columns   []string `json:"columns"`
		Rows      [][]any  `json:"rows"`
		Changes   int      `json:"changes"`
		Truncated bool     `json:"truncated"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	return session.printRows(out.Columns, out.Rows, out.Changes, out.Truncated)
}

func (session *session) printRows(columns []string, values [][]any, changes int, truncated bool) error {
	if len(columns) == 0 {
		_, err := fmt.Fprintf(session.Notes, "%d rows changed\n", changes)
		return err
	}
	titles, rows := make([]string, len(columns)), make([][]string, len(values))
	for i, name := range columns {
		titles[i] = cell(name)
	}
	for i, row := range values {
		for _, value := range row {
			rows[i] = append(rows[i], cell(value))
		}
	}
	err := writeRows(session.Out, titles, rows)
	if truncated {
		fmt.Fprintln(session.Notes, "There are more rows than an answer holds; --csv prints all of them.")
	}
	return err
}

// copy prints an answer in CSV as it comes.
func (session *session) copy(ctx context.Context, call request) error {
	call.accept = "text/csv"
	resp, err := session.api.send(ctx, call)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(session.Out, resp.Body)
	return err
}
