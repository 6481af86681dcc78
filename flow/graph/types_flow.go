package graph

import "satchel/agent"

const handleDefault = "default" // of a switch

const nodesDocs = "workflows.md#nodes"

const maxWaitSeconds = 31_622_400 // seconds: 366 days

var flowTypes = []Type{
	{
		Name:     agent.NodeTrigger,
		Label:    "Trigger",
		Group:    "Flow",
		Icon:     "Zap",
		Docs:     nodesDocs,
		Summary:  "Starts the workflow by hand, by a webhook, by a form, on a schedule or when an event happens.",
		Synonyms: []string{"start", "webhook", "form", "event", "hook", "cron", "schedule", "manual", "row"},
		Data: []Field{
			text(
				"event",
				"Event",
				"manual, webhook, form, schedule, calendar, or an event such as message.received; "+
					"workflow.* matches several. Only events after the workflow became active count.",
			).ref("event").defaultsTo("manual"),
			conditions("filter", "Only if", "Conditions that the payload must meet."),
			text("gateway_id", "Channel", "Only messages received through this channel.").ref("gateway").advanced(),
			text("table", "Table", "Only events of rows of this table.").ref("table").when("event", "row.created", "row.updated", "row.deleted", "row.*"),
			list("fields", "Fields", "form: the fields, each with name, label, type, required, options and help.").
				widget("formfields").
				when("event", agent.TriggerForm),
			text("title", "Title", "form: the heading. By default, the workflow's name.").when("event", agent.TriggerForm),
			text("description", "Description", "form: a text above the fields.").widget("textarea").when("event", agent.TriggerForm),
			text("submit", "Button", "form: the text of the button.").advanced().when("event", agent.TriggerForm),
			text("success", "Thanks", "form: what people read afterwards, unless the workflow has a webhook-response.").
				widget("textarea").
				advanced().
				when("event", agent.TriggerForm),
			incomingAuth,
		},
		Example: `{"event":"message.received","filter":[{"left":"{{message.content}}","operator":"contains","right":"order"}]}`,
		ExampleOutput: `{"message":{"id":7,"role":"user","content":"Where is my order?"},"contact":{"id":"contact-06f1q2s3t4v5a6b7c8d9","name":"Ada Lovelace","email":"ada@example.com","tags":["vip"]},
			"conversation":{"id":"conversation-06f1q2s3t4v5a6b7c8d9","external_thread_id":"4711"},"gateway":{"id":"gateway-06f1q2s3t4v5a6b7c8d9","name":"Telegram"}}`,
	},
	{
		Name:     agent.NodeIfElse,
		Label:    "If",
		Group:    "Flow",
		Icon:     "GitBranch",
		Docs:     nodesDocs,
		Summary:  "Continues by true or false, depending on conditions or a JavaScript expression.",
		Synonyms: []string{"if-else", "condition", "branch", "decision", "filter"},
		Data: []Field{
			conditions("conditions", "Conditions", "Comparisons of values."),
			choice("combinator", "Combine by", "Whether all conditions must hold, or one of them.", "and", "or").defaultsTo("and"),
			text("condition", "Expression", "A JavaScript expression, instead of conditions.").widget("javascript").advanced(),
		},
		OneOf:         []string{"conditions", "condition"},
		Handles:       []string{"true", "false"},
		Normal:        "true",
		Output:        []Field{boolean("result", "Result", "The result of the conditions.").required()},
		Example:       `{"combinator":"and","conditions":[{"left":"{{contact.tags}}","operator":"contains","right":"vip"}]}`,
		ExampleOutput: `{"result":true}`,
	},
	{
		Name:     agent.NodeSwitch,
		Label:    "Switch",
		Group:    "Flow",
		Icon:     "Split",
		Docs:     nodesDocs,
		Summary:  "Continues by the first case that equals a value, or whose conditions hold.",
		Synonyms: []string{"case", "route", "router", "match"},
		Data: []Field{
			anything("value", "Value", "Compared with the values of the cases.").widget("template"),
			field("cases", "cases", "Cases", "Each has an id, which is a handle, and either a value or conditions with a combinator.").
				widget("cases").
				required(),
		},
		Handles:       []string{handleDefault},
		Cases:         true,
		Normal:        handleDefault,
		Output:        []Field{text("case", "Case", "The id of the case, or default.").required(), anything("value", "Value", "The value that was compared.")},
		Example:       `{"value":"{{message.language}}","cases":[{"id":"german","value":"de"},{"id":"english","value":"en"}]}`,
		ExampleOutput: `{"case":"german","value":"de"}`,
	},
	{
		Name:     agent.NodeLoop,
		Label:    "Loop",
		Group:    "Flow",
		Icon:     "Repeat",
		Docs:     nodesDocs,
		Summary:  "Runs the nodes of its body once for each item of a list.",
		Synonyms: []string{"for each", "foreach", "iterate", "map", "repeat", "items"},
		Data: []Field{
			anything("items", "Items", "A list, or a template that produces one.").widget("template").required(),
			text("item_variable", "Variable", "The name of the current item in templates of the body; index is its number.").defaultsTo("item"),
			number("concurrency", "At once", "How many iterations run at a time.").bounds(1, 100).defaultsTo(1).advanced(),
			number("max_iterations", "Maximum iterations", "More items than this are an error.").bounds(1, 10_000).defaultsTo(1000).advanced(),
			boolean("continue_on_error", "Continue on error", "A failed iteration does not end the loop.").defaultsTo(false).advanced(),
		},
		Handles: []string{agent.HandleLoop, agent.HandleDone},
		Normal:  agent.HandleDone,
		Output: []Field{
			list("results", "Results", "The output of each iteration, in order.").required(),
			number("count", "Count", "The number of iterations.").required(),
			list("errors", "Errors", "The failed iterations.").required(),
		},
		Example:       `{"items":"{{nodes.fetch.body.rows}}","item_variable":"row"}`,
		ExampleOutput: `{"results":[{"sent":true},{"sent":true}],"count":2,"errors":[]}`,
	},
	{
		Name: agent.NodeWait, Label: "Wait", Group: "Flow", Icon: "Clock", Docs: nodesDocs,
		Summary: "Waits for a duration, until a time, or for an event.", Synonyms: []string{"delay", "sleep", "pause", "timer", "until"},
		Data: []Field{
			number("duration", "Duration", "How long, in the unit.").bounds(0, maxWaitSeconds).widget("duration"),
			choice("unit", "Unit", "Of the duration.", "seconds", "minutes", "hours", "days").defaultsTo("seconds"),
			text("until", "Until", "A time such as 2026-01-31T09:00:00Z."),
			text("event", "Event", "The name of an event to wait for.").ref("event"),
			number("timeout", "Timeout", "How long to wait for the event. The default is 30 days.").bounds(0, maxWaitSeconds).unit("s").advanced(),
		},
		OneOf: []string{"duration", "until", "event"},
		Output: []Field{
			choice("resumed_by", "Ended by", "What ended the wait.", "timer", "event", "api", "timeout").required(),
			anything("data", "Data", "The event's data, or what the API call sent."),
		},
		Example: `{"duration":2,"unit":"hours"}`, ExampleOutput: `{"resumed_by":"timer","data":{}}`,
	},
	{
		Name:     "workflow",
		Label:    "Workflow",
		Group:    "Flow",
		Icon:     "Workflow",
		Docs:     nodesDocs,
		Summary:  "Runs another workflow and, by default, waits for it to end.",
		Synonyms: []string{"sub-workflow", "subflow", "call", "execute"},
		Data: []Field{
			text("workflow_id", "Workflow", "The workflow to run.").ref("workflow").required(),
			object("input", "Input", "The payload for its trigger.").widget("keyvalue"),
			boolean("wait", "Wait for it to end", "If false, the output has no result yet.").defaultsTo(true),
		},
		Output: []Field{
			text("execution_id", "Execution", "").required(),
			choice("status", "Status", "", "queued", "running", "complete", "errored", "terminated").required(),
			anything("output", "Output", "The output of the other workflow."),
		},
		Example:       `{"workflow_id":"workflow-06f1q2s3t4v5a6b7c8d9","input":{"email":"{{contact.email}}"}}`,
		ExampleOutput: `{"execution_id":"execution-06f1q2s3t4v5a6b7c8d9","status":"complete","output":{"text":"done"}}`,
	},
	{
		Name: "webhook-response", Label: "Webhook response", Group: "Flow", Icon: "Reply", Docs: "workflows.md#hooks",
		Summary: "Responds to the webhook or the form that started the execution.", Synonyms: []string{"respond", "answer", "http response", "return"},
		Data: []Field{
			number("status", "Status", "Of the HTTP response.").bounds(200, 599).defaultsTo(200),
			object("headers", "Headers", "Of the HTTP response.").widget("keyvalue").advanced(),
			anything("body", "Body", "Text, or JSON.").widget("textarea"),
		},
		Output:  []Field{number("status", "Status", "").required(), object("headers", "Headers", "").required(), anything("body", "Body", "")},
		Example: `{"status":200,"body":{"ok":true}}`, ExampleOutput: `{"status":200,"headers":{},"body":{"ok":true}}`,
	},
}

// incomingAuth is the auth of a trigger; see agent.IncomingAuth.
var incomingAuth = object(
	"auth",
	"Who may call the webhook, or use the form",
	"If absent, callers need the role admin.",
	choice(
		"type", "Method", "How callers authenticate.", "none", "bearer", "basic", "header", "hmac", "standard-webhooks",
	),
	text("token", "Token", "Of bearer.").secret().when("type", "bearer"),
	text("username", "User", "Of basic.").when("type", "basic"),
	text("password", "Password", "Of basic.").secret().when("type", "basic"),
	text("name", "Header", "Of header.").when("type", "header"),
	text("value", "Value", "Of header.").secret().when("type", "header"),
	text("header", "Signature header", "For hmac. The default is X-Hub-Signature-256.").when("type", "hmac"),
	text("secret", "Secret", "For hmac and standard-webhooks.").secret().when("type", "hmac", "standard-webhooks"),
	choice(
		"repeats",
		"Repeated bodies",
		"For hmac: start, if requests with equal bodies each start an execution.",
		agent.RepeatsStart,
	).when("type", "hmac"),
).advanced()
