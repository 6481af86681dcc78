package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
	"satchel/agent/template"
)

// Limits of one page.
const (
	maxPage     = 8 << 20 // bytes of a response
	pageTime    = 30 * time.Second
	maxAttempts = 4
	maxWait     = 60 * time.Second // for a server that asks to retry later
	firstWait   = time.Second
	maxNextPage = 4096 // bytes of a cursor
)

// Codes of an API that could not be read, in addition to those of agent/egress.
const (
	CodeAnswer agent.Code = "UNEXPECTED_ANSWER" // not JSON, or not of the form that the config describes
	CodeLeft   agent.Code = "LEFT_SITE"         // the API redirects to another host
)

// Client reads APIs. It is safe for concurrent use.
type Client struct {
	egress    *egress.Client
	userAgent string
	sleep     func(context.Context, time.Duration) error
	decoding  chan struct{} // a token for decoding one page, which takes ten times its size
}

// NewClient returns a Client that may reach the private ranges allow.
func NewClient(allow []agent.AddressRange, version string) *Client {
	return &Client{
		egress: egress.New(egress.Policy{
			Allow:         allow,
			MaxResponse:   maxPage,
			HeaderTimeout: pageTime,
		}),
		userAgent: "Satchel/" + version,
		sleep:     clock.Sleep,
		decoding:  make(chan struct{}, 1),
	}
}

// Check validates a config without network access. The error names the field.
func (c *Client) Check(config *agent.APIConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	_, err := c.plan(*config)
	return err
}

// plan is a parsed config.
type plan struct {
	agent.APIConfig
	credential egress.Credential

	url       *url.URL
	items, id template.Path
	next      template.Path
	template  Template
}

func (c *Client) plan(config agent.APIConfig) (*plan, error) {
	p := &plan{APIConfig: config}
	var err error
	if p.url, err = c.egress.CheckField("config.url", config.URL); err != nil {
		return nil, err
	}
	var is agent.Issues
	path := func(field, text string) template.Path {
		found, err := template.ParsePath(text)
		if err != nil {
			is.Add(field, err.Error())
		}
		return found
	}
	p.items = path("config.items_path", config.ItemsPath)
	p.id = path("config.id_path", config.IDPath)
	p.next = path("config.pagination.next_path", config.Pagination.NextPath)
	if p.template, err = ParseTemplate(config.ContentTemplate); err != nil {
		is.Add("config.content_template", agent.Clip(err.Error(), 200))
	}
	return p, is.Err()
}

// Page is the result of one request.
type Page struct {
	Items []Item
	Next  string // location of the next page; "" after the last one of a cursor
}

// Page reads page number done, counted from 0. next is from the previous page.
// config contains its secrets; credential is the one that it names, or nil. Errors are *agent.Error meant for clients,
// or ctx's.
func (c *Client) Page(
	ctx context.Context,
	config agent.APIConfig,
	credential egress.Credential,
	done int,
	next string,
) (Page, error) {
	plan, err := c.plan(config)
	if errors.Is(err, egress.ErrBlocked) { // it was allowed when the source was created
		refused := egress.Refusal("config.url", err)
		refused.Code = egress.CodeBlocked
		return Page{}, refused
	} else if err != nil {
		return Page{}, err
	}
	plan.credential = credential
	target, err := plan.pageURL(done, next)
	if err != nil {
		return Page{}, err
	}
	body, err := c.fetch(ctx, plan, target)
	if err != nil {
		return Page{}, err
	}
	select {
	case c.decoding <- struct{}{}:
		defer func() { <-c.decoding }()
	case <-ctx.Done():
		return Page{}, ctx.Err()
	}
	return plan.read(body)
}

// pageURL returns the URL of a page.
func (p *plan) pageURL(done int, next string) (*url.URL, error) {
	u := *p.url
	query := u.Query()
	switch {
	case p.Pagination.Type == "page":
		first, err := strconv.Atoi(query.Get(p.Pagination.Param))
		if err != nil {
			first = 1
		}
		query.Set(p.Pagination.Param, strconv.Itoa(first+done))
	case p.Pagination.Type == "cursor" && next != "" && p.Pagination.Param != "":
		query.Set(p.Pagination.Param, next)
	case p.Pagination.Type == "cursor" && next != "":
		to, err := u.Parse(next)
		if err != nil {
			return nil, agent.Errorf(CodeAnswer, "the value at config.pagination.next_path is not a URL")
		}
		if to.Scheme != u.Scheme || to.Host != u.Host {
			return nil, agent.Errorf(CodeLeft, "the next page is on another host, %s", agent.Clip(to.Host, 100))
		}
		return withSecrets(to, query), nil
	default:
		return &u, nil
	}
	u.RawQuery = query.Encode()
	return &u, nil
}

// withSecrets returns the URL of the next page with the secrets of the first one's query,
// which are masked in responses. Those of a credential are set when it is sent.
func withSecrets(next *url.URL, first url.Values) *url.URL {
	query := next.Query()
	found := false
	for name, values := range query {
		if !slices.Contains(values, agent.Mask) {
			continue
		}
		found = true
		if query[name] = first[name]; len(first[name]) == 0 {
			delete(query, name)
		}
	}
	if !found {
		return next
	}
	full := *next
	full.RawQuery = query.Encode()
	return &full
}

// read converts a response to items.
func (p *plan) read(body []byte) (page Page, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var answer any
	if err := decoder.Decode(&answer); err != nil {
		return page, agent.Errorf(CodeAnswer, "the API did not return JSON").Because(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return page, agent.Errorf(CodeAnswer, "the API returned more than one JSON value")
	}
	found, ok := p.items.Walk(answer)
	if !ok {
		return page, agent.Errorf(CodeAnswer, "config.items_path does not exist in the response")
	}
	list, ok := found.([]any)
	if _, one := found.(map[string]any); one {
		list, ok = []any{found}, true
	}
	if !ok && found != nil {
		return page, agent.Errorf(CodeAnswer, "config.items_path is neither a list nor an object in the response")
	}
	page.Items = make([]Item, len(list))
	for i, item := range list {
		page.Items[i] = p.item(item)
	}
	if p.Pagination.Type == "cursor" {
		next, _ := p.next.Walk(answer)
		if isCompound(next) {
			return page, agent.Errorf(
				CodeAnswer,
				"config.pagination.next_path is neither a string nor a number in the response",
			)
		}
		if page.Next = plain(next); next == false {
			page.Next = ""
		}
		if len(page.Next) > maxNextPage {
			return page, agent.Errorf(CodeAnswer, "the cursor of the next page is longer than %d bytes", maxNextPage)
		}
	}
	return page, nil
}

func (p *plan) item(value any) Item {
	var item Item
	if object, ok := value.(map[string]any); ok {
		for _, name := range []string{"title", "name"} {
			if text, ok := object[name].(string); ok && item.Title == "" {
				item.Title = title(text)
			}
		}
	}
	if len(p.template) > 0 {
		item.Text = p.template.Render(value)
	} else {
		var b strings.Builder
		lines(&b, "", value, 0)
		item.Text = b.String()
	}
	id := ""
	if len(p.id) > 0 {
		if found, ok := p.id.Walk(value); ok && !isCompound(found) {
			id = plain(found)
		}
	}
	item.identify(id)
	return item
}

// explainStatus returns the error for a status other than success.
func explainStatus(status int) error {
	return agent.Errorf(
		agent.CodeUpstream,
		"%s",
		strings.TrimSpace(fmt.Sprintf("the API answered %d %s", status, http.StatusText(status))),
	).With("status", status)
}
