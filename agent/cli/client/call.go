package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"satchel/agent"
)

// methods are those of the API's routes.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

func (session *session) call() *cobra.Command {
	field := ""
	command := &cobra.Command{
		Use:   "api [METHOD] PATH [BODY]",
		Short: "Call any route of the API and print the response",
		Args:  cobra.RangeArgs(1, 3),
		Long: "Call any route of the API and print the response.\n\nA PATH that begins with / is relative to the " +
			"API, any other to the agent. BODY is JSON; - is standard input, @FILE a file. METHOD is GET, " +
			"or POST where there is a body.",
		Example: `  satchel api PUT settings '{"timezone":"Europe/Berlin"}' --agent bakery`,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := session.routeCall(args)
			if err != nil {
				return err
			}
			answer, err := session.api.raw(c.Context(), r)
			if err != nil {
				return err
			}
			return session.printAnswer(answer, field)
		},
	}
	command.Flags().StringVar(&field, "field", "", "print only this field, such as id or agents.0.name")
	return command
}

// routeCall reads METHOD, PATH and BODY.
func (session *session) routeCall(args []string) (request request, err error) {
	if slices.Contains(methods, args[0]) {
		request.method, args = args[0], args[1:]
	} else if len(args) > 1 &&
		args[0] == strings.ToUpper(args[0]) &&
		!strings.ContainsAny(args[0], "/-_") {
		return request, fmt.Errorf("the API has no method %s, but %s", clean(args[0]), strings.Join(methods, ", "))
	}
	if len(args) == 0 || len(args) > 2 {
		return request, fmt.Errorf(
			"expects a path and at most one body after the method (%s)",
			strings.Join(methods, ", "),
		)
	}
	address, err := url.Parse(args[0])
	if err != nil ||
		address.IsAbs() ||
		address.Host != "" ||
		address.Fragment != "" {
		return request, fmt.Errorf("%q is not a path of the API", args[0])
	}
	request.path, request.query = address.EscapedPath(), address.Query()
	if !strings.HasPrefix(request.path, "/") {
		request.path = session.path() + "/" + request.path
	}
	if len(args) == 2 {
		text, err := session.argument(args[1])
		if err != nil {
			return request, err
		}
		if !json.Valid([]byte(text)) {
			return request, errors.New("the body is not JSON")
		}
		request.body = json.RawMessage(text)
	}
	if request.method == "" {
		request.method = http.MethodGet
		if request.body != nil {
			request.method = http.MethodPost
		}
	}
	return request, nil
}

// printAnswer prints an answer as JSON, or one field of it.
func (session *session) printAnswer(answer []byte, field string) error {
	if field == "" {
		var out bytes.Buffer
		if json.Indent(&out, answer, "", "  ") != nil {
			out.Reset()
			out.Write(answer) // a file, or a text
		}
		if _, err := session.Out.Write(out.Bytes()); err != nil ||
			len(answer) == 0 ||
			bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			return err
		}
		_, err := fmt.Fprintln(session.Out)
		return err
	}
	var value any
	if err := agent.DecodeJSON(answer, &value); err != nil {
		return errors.New("the answer is not JSON")
	}
	text, err := fieldText(value, field)
	if err == nil {
		_, err = fmt.Fprintln(session.Out, text)
	}
	return err
}

// fieldText returns the value at a path such as agents.0.id: strings unchanged,
// anything else as JSON.
func fieldText(value any, path string) (string, error) {
	for name := range strings.SplitSeq(path, ".") {
		var inner any
		switch v := value.(type) {
		case map[string]any:
			inner = v[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
				inner = v[i]
			}
		}
		if inner == nil {
			return "", fmt.Errorf("the answer has no %s", path)
		}
		value = inner
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	raw, err := json.Marshal(value)
	return string(raw), err
}
