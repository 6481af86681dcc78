package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"satchel/agent"
	"satchel/agent/browse"
	"satchel/agent/template"
	"satchel/browser"
	"satchel/store"
)

// instructor has a language model carry out the instructions of nodes in
// browser sessions.
type instructor struct {
	*browsing
	navigator *browse.Navigator
	// values returns those of a credential of type env.
	values func(ctx context.Context, db *store.DB, ref string) (map[string]string, error)
}

// browseTimeout is the default time limit of a browse node.
const browseTimeout = 30 * time.Minute

// Instruct registers the node types in which a language model drives a browser.
// Call it after Browse.
func (engine *Engine) Instruct(
	navigator *browse.Navigator,
	values func(ctx context.Context, db *store.DB, ref string) (map[string]string, error),
) {
	i := &instructor{engine.browsing, navigator, values}
	extract := engine.kinds["extract"].Run
	engine.Register(map[string]*Kind{
		"act":     {Run: i.act, Timeout: browse.Timeout},
		"observe": {Run: i.observe, Timeout: browse.Timeout},
		"browse":  {Run: i.browse, Timeout: browseTimeout, CheckSaved: checkAddress},
		"extract": {Timeout: browse.Timeout, Run: func(ctx context.Context, c *Call) (Outcome, error) {
			if isSet(c.Data["instruction"]) {
				return i.extract(ctx, c)
			}
			return extract(ctx, c)
		}},
	})
}

// variables returns the values that a node may type: those of its credential,
// and its own.
func (i *instructor) variables(ctx context.Context, call *Call) (agent.Variables, error) {
	all := agent.Variables{}
	if ref := call.Text("credential"); ref != "" {
		values, err := i.values(ctx, call.DB, ref)
		if err != nil {
			return nil, err
		}
		for name, value := range values {
			all[name] = value
		}
	}
	own, _ := call.Data["variables"].(map[string]any)
	for name, value := range own {
		all[name] = template.Text(value)
	}
	return all, nil
}

// inSession runs an instruction in the node's session.
func (i *instructor) inSession(
	ctx context.Context,
	c *Call,
	opens bool,
	run func(*browser.Session) (any, error),
) (Outcome, error) {
	s, release, err := i.session(ctx, browserAction{opens: opens}, c)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	out, err := run(s)
	return Outcome{Output: out}, err
}

func (i *instructor) act(ctx context.Context, c *Call) (Outcome, error) {
	v, err := i.variables(ctx, c)
	if err != nil {
		return Outcome{}, err
	}
	return i.inSession(ctx, c, false, func(s *browser.Session) (any, error) {
		return i.navigator.Act(ctx, s, browse.ActRequest{
			Instruction: c.Text("instruction"),
			Variables:   v,
			NoCache:     !c.Bool("cache", true),
		})
	})
}

func (i *instructor) observe(ctx context.Context, c *Call) (Outcome, error) {
	return i.inSession(ctx, c, false, func(s *browser.Session) (any, error) {
		return i.navigator.Observe(ctx, s, c.Text("instruction"))
	})
}

func (i *instructor) extract(ctx context.Context, c *Call) (Outcome, error) {
	schema, err := c.schema("schema")
	if err != nil {
		return Outcome{}, err
	}
	return i.inSession(ctx, c, false, func(s *browser.Session) (any, error) {
		return i.navigator.Extract(ctx, s, browse.ExtractRequest{Instruction: c.Text("instruction"), Schema: schema})
	})
}

// schema returns a JSON Schema in the node's data, or nil.
func (c *Call) schema(key string) (json.RawMessage, error) {
	if !isSet(c.Data[key]) {
		return nil, nil
	}
	return json.Marshal(c.Data[key])
}

// browse pursues a goal until its end.
func (i *instructor) browse(ctx context.Context, call *Call) (Outcome, error) {
	options, err := i.browseOptions(ctx, call)
	if err != nil {
		return Outcome{}, err
	}
	return i.inSession(ctx, call, true, func(s *browser.Session) (any, error) {
		b, err := i.navigator.Browse(ctx, s, options)
		if err != nil {
			return nil, err
		}
		i.navigator.Wait(ctx, b.ID)
		if ctx.Err() != nil {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeSessionTimeout)
			defer cancel()
			return nil, errors.Join(ctx.Err(), i.navigator.Cancel(ending, call.DB, s.ID(), b.ID))
		}
		return browseOutput(ctx, call.DB, s, b.ID)
	})
}

// browseOutput returns the output of a browse that has ended, or the error of one
// that failed.
func browseOutput(ctx context.Context, db *store.DB, session *browser.Session, id string) (any, error) {
	b, steps, err := db.Browse(ctx, session.ID(), id)
	if err != nil {
		return nil, err
	}
	if b.Status == agent.BrowseFailed || b.Status == agent.BrowseCancelled {
		return nil, agent.Errorf(agent.CodeExecution, "the goal was not reached: %s", b.Reason).With("browse_id", id)
	}
	out := map[string]any{
		"status":     b.Status,
		"result":     b.Result,
		"reason":     b.Reason,
		"steps":      steps,
		"session_id": session.ID(),
		"browse_id":  id,
		"url":        "",
		"title":      "",
	}
	if p := session.ActivePage(); p != nil {
		out["url"], out["title"] = p.URL(), p.Title()
	}
	return out, nil
}

func (i *instructor) browseOptions(ctx context.Context, call *Call) (options agent.BrowseOptions, err error) {
	options = agent.BrowseOptions{Goal: call.Text("goal"), URL: call.Text("url")}
	if options.Variables, err = i.variables(ctx, call); err != nil {
		return options, err
	}
	if options.OutputSchema, err = call.schema("output_schema"); err != nil {
		return options, err
	}
	takeover := call.Bool("takeover", true)
	options.Takeover = &takeover
	for key, into := range map[string]**int{"max_steps": &options.MaxSteps, "max_tokens": &options.MaxTokens} {
		if isSet(call.Data[key]) {
			n := int(call.Number(key, 0))
			*into = &n
		}
	}
	hosts, _ := call.Data["hosts"].([]any)
	for _, host := range hosts {
		options.Hosts = append(options.Hosts, fmt.Sprint(host))
	}
	return options, nil
}
