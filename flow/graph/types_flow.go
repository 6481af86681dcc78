package graph

import "satchel/agent"

const handleDefault = "default" // of a switch

const nodesDocs = "workflows.md#nodes"

const longestWait = 31_622_400 // seconds: 366 days

var flowTypes = []Type{
	{
		Name: agent.NodeTrigger, Label: "Trigger", Group: "Flow", Icon: "Zap", Docs: nodesDocs,
		Summary: "Starts the workflow by hand, by a webhook, on a schedule or when an event happens.", Synonyms: []string{"start", "webhook", "event", "hook", "cron", "schedule", "manual"},
		Data: []Field{
			text("event", "Event", "manual, webhook, schedule, calendar, or an event such as message.received; workflow.* takes in many. It hears of events from when its workflow became active.").naming("event").or("manual"),
			conditions("filter", "Only if", "Conditions that the payload must fulfil."),
			text("gateway_id", "Gateway", "Only messages that came through this gateway.").naming("gateway").more(),
			hookAuth,
		},
		Example: `{"event":"message.received","filter":[{"left":"{{message.content}}","operator":"contains","right":"order"}]}`,
		ExampleOutput: `{"message":{"id":7,"role":"user","content":"Where is my order?"},"contact":{"id":"contact-06f1q2s3t4v5a6b7c8d9","name":"Ada Lovelace","email":"ada@example.com","tags":["vip"]},
			"conversation":{"id":"conversation-06f1q2s3t4v5a6b7c8d9","external_thread_id":"4711"},"gateway":{"id":"gateway-06f1q2s3t4v5a6b7c8d9","name":"Telegram"}}`,
	},
	{
		Name: agent.NodeIfElse, Label: "If", Group: "Flow", Icon: "GitBranch", Docs: nodesDocs,
		Summary: "Goes on by true or false, as conditions or a JavaScript expression decide.", Synonyms: []string{"if-else", "condition", "branch", "decision", "filter"},
		Data: []Field{
			conditions("conditions", "Conditions", "Compare values with each other."),
			choice("combinator", "Combine by", "Whether all conditions must hold, or one of them.", "and", "or").or("and"),
			text("condition", "Expression", "A JavaScript expression in place of conditions.").as("javascript").more(),
		},
		OneOf: []string{"conditions", "condition"}, Handles: []string{"true", "false"}, Normal: "true",
		Output:  []Field{truth("result", "Result", "What was decided.").must()},
		Example: `{"combinator":"and","conditions":[{"left":"{{contact.tags}}","operator":"contains","right":"vip"}]}`, ExampleOutput: `{"result":true}`,
	},
	{
		Name: agent.NodeSwitch, Label: "Switch", Group: "Flow", Icon: "Split", Docs: nodesDocs,
		Summary: "Goes on by the first case that a value equals, or whose conditions hold.", Synonyms: []string{"case", "route", "router", "match"},
		Data: []Field{
			anything("value", "Value", "What the values of the cases are compared with.").as("template"),
			field("cases", "cases", "Cases", "Each has an id, which is a way out, and a value or conditions with combinator.").as("cases").must(),
		},
		Handles: []string{handleDefault}, Cases: true, Normal: handleDefault,
		Output:  []Field{text("case", "Case", "The id of the case, or default.").must(), anything("value", "Value", "The value that was compared.")},
		Example: `{"value":"{{message.language}}","cases":[{"id":"german","value":"de"},{"id":"english","value":"en"}]}`, ExampleOutput: `{"case":"german","value":"de"}`,
	},
	{
		Name: agent.NodeLoop, Label: "Loop", Group: "Flow", Icon: "Repeat", Docs: nodesDocs,
		Summary: "Runs the nodes of its body once for each item of a list.", Synonyms: []string{"for each", "foreach", "iterate", "map", "repeat", "items"},
		Data: []Field{
			anything("items", "Items", "A list, or a template that gives one.").as("template").must(),
			text("item_variable", "Variable", "The name of an item in templates of the body; index is its number.").or("item"),
			number("concurrency", "At once", "How many iterations run at a time.").within(1, 100).or(1).more(),
			number("max_iterations", "Most iterations", "More items than this are an error.").within(1, 10_000).or(1000).more(),
			truth("continue_on_error", "Go on after errors", "An iteration that fails does not end the loop.").or(false).more(),
		},
		Handles: []string{agent.HandleLoop, agent.HandleDone}, Normal: agent.HandleDone,
		Output: []Field{list("results", "Results", "What each iteration came to, in order.").must(), number("count", "Count", "How many iterations there were.").must(),
			list("errors", "Errors", "The iterations that failed.").must()},
		Example: `{"items":"{{nodes.fetch.body.rows}}","item_variable":"row"}`, ExampleOutput: `{"results":[{"sent":true},{"sent":true}],"count":2,"errors":[]}`,
	},
	{
		Name: agent.NodeWait, Label: "Wait", Group: "Flow", Icon: "Clock", Docs: nodesDocs,
		Summary: "Waits for a time, until a moment, or for an event.", Synonyms: []string{"delay", "sleep", "pause", "timer", "until"},
		Data: []Field{
			number("duration", "Duration", "How long, in the unit.").within(0, longestWait).as("duration"),
			choice("unit", "Unit", "Of the duration.", "seconds", "minutes", "hours", "days").or("seconds"),
			text("until", "Until", "A time such as 2026-01-31T09:00:00Z."),
			text("event", "Event", "The name of an event to wait for.").naming("event"),
			number("timeout", "Give up after", "How long to wait for the event; 30 days without it.").within(0, longestWait).in("s").more(),
		},
		OneOf:   []string{"duration", "until", "event"},
		Output:  []Field{choice("resumed_by", "Ended by", "What ended the wait.", "timer", "event", "api", "timeout").must(), anything("data", "Data", "Of the event, or what the API was given.")},
		Example: `{"duration":2,"unit":"hours"}`, ExampleOutput: `{"resumed_by":"timer","data":{}}`,
	},
	{
		Name: "workflow", Label: "Workflow", Group: "Flow", Icon: "Workflow", Docs: nodesDocs,
		Summary: "Executes another workflow, and waits for its end unless told not to.", Synonyms: []string{"sub-workflow", "subflow", "call", "execute"},
		Data: []Field{
			text("workflow_id", "Workflow", "The workflow to execute.").naming("workflow").must(),
			object("input", "Input", "The payload of its trigger.").as("keyvalue"),
			truth("wait", "Wait for its end", "Without it the output has no result yet.").or(true),
		},
		Output: []Field{text("execution_id", "Execution", "").must(), choice("status", "Status", "", "queued", "running", "complete", "errored", "terminated").must(),
			anything("output", "Output", "Of the other workflow.")},
		Example: `{"workflow_id":"workflow-06f1q2s3t4v5a6b7c8d9","input":{"email":"{{contact.email}}"}}`, ExampleOutput: `{"execution_id":"execution-06f1q2s3t4v5a6b7c8d9","status":"complete","output":{"text":"done"}}`,
	},
	{
		Name: "webhook-response", Label: "Webhook response", Group: "Flow", Icon: "Reply", Docs: "workflows.md#hooks",
		Summary: "Answers the webhook that started the execution.", Synonyms: []string{"respond", "answer", "http response", "return"},
		Data: []Field{
			number("status", "Status", "Of the HTTP answer.").within(200, 599).or(200),
			object("headers", "Headers", "Of the HTTP answer.").as("keyvalue").more(),
			anything("body", "Body", "Text, or JSON.").as("textarea"),
		},
		Output:  []Field{number("status", "Status", "").must(), object("headers", "Headers", "").must(), anything("body", "Body", "")},
		Example: `{"status":200,"body":{"ok":true}}`, ExampleOutput: `{"status":200,"headers":{},"body":{"ok":true}}`,
	},
}

// hookAuth is the auth of a trigger; see agent.HookAuth.
var hookAuth = object("auth", "Who may call the webhook", "Without it callers need the role admin.",
	choice("type", "Proof", "What a caller sends.", "none", "bearer", "basic", "header", "hmac", "standard-webhooks"),
	text("token", "Token", "Of bearer.").secret(), text("username", "User", "Of basic."), text("password", "Password", "Of basic.").secret(),
	text("name", "Header", "Of header."), text("value", "Value", "Of header.").secret(),
	text("header", "Header with the signature", "Of hmac; X-Hub-Signature-256 without it."), text("secret", "Secret", "Of hmac and standard-webhooks.").secret(),
	choice("repeats", "Equal bodies", "Of hmac: start, when equal bodies are each meant.", agent.StartRepeats)).more()
