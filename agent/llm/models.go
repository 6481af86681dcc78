package llm

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"satchel/agent/egress"
)

// Limits of a list of models.
const (
	listTimeout  = 10 * time.Second
	maxModels    = 1000
	maxModelName = 200 // bytes
)

// Models returns the names of the models that model's provider offers, sorted.
// m.Name is ignored. Errors are those of Chat.
func (c *Client) Models(ctx context.Context, model Model) ([]string, error) {
	model.Name = "any"
	if err := model.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := c.openAIModels
	if model.Provider == Anthropic {
		list = c.anthropicModels
	}
	names, err := list(ctx, model)
	if err != nil {
		return nil, model.explain(ctx, err)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return name == "" || len(name) > maxModelName
	})
	return names[:min(len(names), maxModels)], nil
}

// modelList is the response of both APIs to GET /models.
type modelList struct {
	Data []struct {
		ID string `json:"id"`
	} `json:"data"`
}

func (c *Client) openAIModels(ctx context.Context, m Model) ([]string, error) {
	call, err := openAICallOf(m, "/models")
	if err != nil {
		return nil, err
	}
	return c.list(ctx, call)
}

func (c *Client) anthropicModels(ctx context.Context, m Model) ([]string, error) {
	call, err := anthropicCallOf(m, "/v1/models")
	if err != nil {
		return nil, err
	}
	call.Query = url.Values{"limit": {strconv.Itoa(maxModels)}}
	return c.list(ctx, call)
}

// list requests a list of models once.
func (c *Client) list(ctx context.Context, call egress.Call) ([]string, error) {
	once := c.api
	once.attempts = 1
	var answer modelList
	if err := once.getJSON(ctx, call, nil, &answer); err != nil {
		return nil, err
	}
	names := make([]string, len(answer.Data))
	for i, model := range answer.Data {
		names[i] = model.ID
	}
	return names, nil
}
