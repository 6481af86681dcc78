// Walk creates an agent, uploads a document, asks, executes a workflow and reads a
// page in a browser session: go run ./examples/walk ADDRESS [PAGE]
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	satchel "satchel/sdk/go"
)

func main() {
	address, page := "http://127.0.0.1:8787", ""
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	if len(os.Args) > 2 {
		page = os.Args[2]
	}
	if err := walk(
		context.Background(),
		satchel.New(address, os.Getenv("SATCHEL_API_KEY")),
		page,
	); err != nil {
		log.Fatal(err)
	}
}

func walk(ctx context.Context, client *satchel.Client, page string) error {
	made, err := client.CreateAgent(ctx, fmt.Sprintf("bakery-go-%d", time.Now().UnixNano()), "")
	if err != nil {
		return err
	}
	agent := client.Agent(made.ID)
	source, err := agent.Upload(
		ctx,
		"handbook.md",
		[]byte("# Returns\nBring a loaf back within two days and get your money back.\n"),
		time.Minute,
	)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s, %d chunks\n", source.Name, source.Status, source.Chunks)
	for event, err := range agent.Stream(ctx, "How do I get a refund?", satchel.AskOptions{Fallback: "passages"}) {
		if err != nil {
			return err
		}
		fmt.Print(event.Delta)
		if event.Answer != nil {
			for _, passage := range event.Answer.Sources {
				fmt.Printf("[%d] %s: %s\n", passage.Number, passage.Metadata.SourceName, passage.Content)
			}
		}
	}
	if err := run(ctx, agent); err != nil {
		return err
	}
	if page != "" {
		if err := browse(ctx, agent, page); err != nil {
			return err
		}
	}
	if _, err := agent.Run(ctx, "workflow-nowhere", nil); !satchel.IsCode(err, "NOT_FOUND") {
		return fmt.Errorf("a workflow that is not there: %w", err)
	}
	return agent.Call(ctx, "DELETE", "", nil, nil, nil)
}

func run(ctx context.Context, agent *satchel.Agent) error {
	var workflow struct{ ID string }
	err := agent.Call(ctx, "POST", "/workflows", nil, map[string]any{
		"name":   "Greet",
		"status": "active",
		"nodes": []map[string]any{
			{"id": "t", "type": "trigger"},
			{
				"id":   "w",
				"type": "wait",
				"data": map[string]any{"duration": 1, "unit": "seconds"},
			},
			{
				"id":   "s",
				"type": "set",
				"data": map[string]any{"values": map[string]any{"hello": "{{name}}"}},
			},
		},
		"edges": []map[string]any{{"source": "t", "target": "w"}, {"source": "w", "target": "s"}},
	}, &workflow)
	if err != nil {
		return err
	}
	execution, err := agent.Run(ctx, workflow.ID, map[string]any{"name": "Ada"})
	fmt.Printf("workflow: %s %v\n", execution.Status, execution.Output)
	return err
}

func browse(ctx context.Context, agent *satchel.Agent, page string) error {
	session, err := agent.Browse(ctx, nil)
	if err != nil {
		return err
	}
	defer session.Close(ctx)
	results, err := session.Execute(
		ctx,
		map[string]any{"action": "navigate", "url": page},
		map[string]any{
			"action":   "extract",
			"selector": "h1",
		},
	)
	if err == nil {
		fmt.Printf("browser: %v\n", results[1])
	}
	return err
}
