package llm

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Bounds of a list of models.
const (
	listTimeout  = 10 * time.Second
	maxModels    = 1000
	maxModelName = 200 // bytes
)

// Models returns the names of the models that m's provider offers, sorted.
// Which one m names does not matter. Errors are those of Chat.
func (c *Client) Models(ctx context.Context, m Model) ([]string, error) {
	m.Name = "any"
	if err := m.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := c.openAIModels
	if m.Provider == Anthropic {
		list = c.anthropicModels
	}
	names, err := list(ctx, m)
	if err != nil {
		return nil, m.explain(ctx, err)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || len(name) > maxModelName })
	return names[:min(len(names), maxModels)], nil
}

func (c *Client) openAIModels(ctx context.Context, m Model) ([]string, error) {
	service := openai.NewModelService(c.openAIOptions(m, 0)...)
	page, err := service.List(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(page.Data))
	for i, model := range page.Data {
		names[i] = model.ID
	}
	return names, nil
}

func (c *Client) anthropicModels(ctx context.Context, m Model) ([]string, error) {
	service := anthropic.NewModelService(c.anthropicOptions(m, 0)...)
	page, err := service.List(ctx, anthropic.ModelListParams{Limit: param.NewOpt[int64](maxModels)})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(page.Data))
	for i, model := range page.Data {
		names[i] = model.ID
	}
	return names, nil
}

// openAIOptions are those of every request to a provider of OpenAI's interface.
func (c *Client) openAIOptions(m Model, retries int) []option.RequestOption {
	options := []option.RequestOption{option.WithBaseURL(m.Address()), option.WithHTTPClient(c.http), option.WithMaxRetries(retries)}
	if m.Key != "" {
		options = append(options, option.WithAPIKey(m.Key))
	}
	return options
}

// anthropicOptions are those of every request to Anthropic.
func (c *Client) anthropicOptions(m Model, retries int) []anthropicoption.RequestOption {
	return []anthropicoption.RequestOption{anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithoutOpenTelemetry(),
		// The SDK adds v1/ itself, and settings name it for every provider.
		anthropicoption.WithBaseURL(strings.TrimSuffix(strings.TrimSuffix(m.Address(), "/"), "/v1")),
		anthropicoption.WithAPIKey(m.Key), anthropicoption.WithHTTPClient(c.http), anthropicoption.WithMaxRetries(retries)}
}
