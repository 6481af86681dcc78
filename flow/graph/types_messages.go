package graph

import "slices"

const (
	messagesDocs = "workflows.md#sending-messages"
	browserDocs  = "workflows.md#driving-a-browser"
)

func gatewayField(platform string) Field {
	return text("gateway_id", "Channel", platform+" channel to send through. By default, the default channel.").
		ref("gateway").
		advanced()
}

func message() Field {
	return text("message", "Text", "Long text is sent as several messages.").widget("textarea").required()
}

var messageTypes = []Type{
	{
		Name: "attachment", Label: "Attachment", Group: "Messages", Icon: "Paperclip", Docs: "workflows.md#files-of-messages",
		Summary: "Reads a file that came with a message.", Synonyms: []string{"file", "photo", "image", "voice", "document", "download", "media"},
		Data: []Field{
			number("message_id", "Message", "Its id. In a workflow that message.received starts, {{message.id}}.").allowKind("template").required(),
			number("index", "Which", "Counted from 0, as in metadata.attachments of the message.").defaultsTo(0),
		},
		Output: []Field{text("name", "Name", "").required(), text("mime_type", "Type", "").required(), number("size", "Size", "").unit("bytes").required(),
			text("data", "Content", "Base64. The whole output is a file for http-request.").required()},
		Example:       `{"message_id":"{{message.id}}","index":0}`,
		ExampleOutput: `{"name":"invoice.pdf","mime_type":"application/pdf","size":48213,"data":"JVBERi0xLjc…"}`,
	},
	{
		Name:     "email",
		Label:    "Email",
		Group:    "Messages",
		Icon:     "Mail",
		Docs:     messagesDocs,
		Needs:    []string{"gateway:email"},
		Summary:  "Sends an email through Resend or SMTP.",
		Synonyms: []string{"mail", "resend", "smtp", "send", "newsletter"},
		Data: []Field{
			text("to", "To", "Addresses, as a list or comma-separated.").allowKind("list").widget("chips").required(),
			text("subject", "Subject", ""),
			text("body", "Text", "").widget("textarea"),
			boolean("html", "HTML", "The text is HTML; values inserted by templates are escaped.").defaultsTo(false),
			text("cc", "Copy", "").allowKind("list").widget("chips").advanced(),
			text("bcc", "Blind copy", "").allowKind("list").widget("chips").advanced(),
			text("reply_to", "Reply to", "").advanced(),
			gatewayField("Email"),
		},
		Output: []Field{
			text("message_id", "Message", "Empty if it was not sent, because it would have answered a program.").required(),
			anything("accepted", "Accepted", "The addresses that were accepted.").required(),
		},
		Example:       `{"to":"{{contact.email}}","subject":"Welcome","body":"Hello {{contact.name}}"}`,
		ExampleOutput: `{"message_id":"4ef9a417","accepted":["ada@example.com"]}`,
	},
	{
		Name: "chatbot_a", Label: "Telegram", Group: "Messages", Icon: "Send", Docs: messagesDocs, Needs: []string{"gateway:telegram"},
		Summary: "Sends a Telegram message.", Synonyms: []string{"chat", "bot", "message", "send"},
		Data: []Field{
			text("to", "To", "A chat's id, @channel, or a conversation's external_thread_id.").allowKind("number").required(),
			message(),
			text("parse_mode", "Formatting", "HTML, MarkdownV2 or Markdown; values inserted by templates are escaped.").advanced(),
			gatewayField("Telegram"),
		},
		Output:  []Field{anything("message_id", "Message", "").required(), anything("chat_id", "Chat", "").required()},
		Example: `{"to":"{{conversation.external_thread_id}}","message":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":12,"chat_id":4711}`,
	},
	{
		Name: "chatbot_b", Label: "WhatsApp", Group: "Messages", Icon: "MessageCircle", Docs: messagesDocs, Needs: []string{"gateway:whatsapp"},
		Summary: "Sends a WhatsApp message through Twilio.", Synonyms: []string{"twilio", "chat", "message", "send"},
		Data:    []Field{text("to", "To", "A number such as +4915112345678.").required(), message(), gatewayField("WhatsApp")},
		Output:  []Field{text("message_id", "Message", "").required(), text("to", "To", "").required()},
		Example: `{"to":"{{contact.phone}}","message":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":"SM1f0e8ae6","to":"+4915112345678"}`,
	},
	{
		Name: "sms", Label: "SMS", Group: "Messages", Icon: "Smartphone", Docs: messagesDocs, Needs: []string{"gateway:sms"},
		Summary: "Sends a text message through Twilio.", Synonyms: []string{"twilio", "text", "phone", "message", "send"},
		Data:    []Field{text("to", "To", "A number such as +4915112345678.").required(), message(), gatewayField("SMS")},
		Output:  []Field{text("message_id", "Message", "").required(), text("to", "To", "").required()},
		Example: `{"to":"{{contact.phone}}","message":"Your code is {{code}}"}`, ExampleOutput: `{"message_id":"SM1f0e8ae6","to":"+4915112345678"}`,
	},
	{
		Name: "team_chat", Label: "Slack", Group: "Messages", Icon: "Hash", Docs: messagesDocs, Needs: []string{"gateway:slack"},
		Summary: "Sends a Slack message to a channel or a person.", Synonyms: []string{"channel", "chat", "message", "send", "team"},
		Data: []Field{
			text("channel", "Channel", "An id such as C1, a person's U1, or a conversation's external_thread_id.").required(),
			message(),
			text("thread_ts", "Thread", "The message to reply to.").advanced(),
			choice(
				"format",
				"Formatting",
				"plain sends the text as it is, mrkdwn interprets Slack's markup; values inserted by templates are escaped.",
				"plain",
				"mrkdwn",
			).defaultsTo("plain").advanced(),
			gatewayField("Slack"),
		},
		Output:  []Field{text("channel", "Channel", "").required(), text("ts", "Message", "").required()},
		Example: `{"channel":"C024BE91L","message":"New order from {{contact.name}}"}`, ExampleOutput: `{"channel":"C024BE91L","ts":"1700000000.000100"}`,
	},
	{
		Name:     "community_chat",
		Label:    "Discord",
		Group:    "Messages",
		Icon:     "MessagesSquare",
		Docs:     messagesDocs,
		Needs:    []string{"gateway:discord"},
		Summary:  "Sends a Discord message, or responds to a command.",
		Synonyms: []string{"channel", "chat", "message", "send", "community", "server"},
		Data: []Field{
			text("channel", "Channel", "An id, or a conversation's external_thread_id, which responds to the pending command there.").required(),
			message(),
			text("reply_to", "Reply to", "A message's id.").advanced(),
			gatewayField("Discord"),
		},
		Output:        []Field{text("message_id", "Message", "").required(), text("channel", "Channel", "").required()},
		Example:       `{"channel":"{{conversation.external_thread_id}}","message":"Hello {{contact.name}}"}`,
		ExampleOutput: `{"message_id":"1102938475610293847","channel":"998877665544332211"}`,
	},
}

func selector(description string) Field {
	return text("selector", "Selector", description).widget("selector")
}

// browserType returns a type whose nodes drive a browser session. The output
// always has url and title.
func browserType(name, label, icon, summary string, synonyms []string, output []Field, data ...Field) Type {
	session := text("session_id", "Session", "A session other than the execution's own.").ref("session").advanced()
	return Type{
		Name:     name,
		Label:    label,
		Group:    "Browser",
		Icon:     icon,
		Docs:     browserDocs,
		Needs:    []string{"browser"},
		Summary:  summary,
		Synonyms: synonyms,
		Data:     append(data, session),
		Output:   slices.Concat(output, []Field{text("url", "URL", "Of the page."), text("title", "Title", "Of the page.")}),
	}
}

// needsModel returns a browser node type that needs a language model.
func needsModel(t Type) Type {
	t.Needs = []string{"browser", "model"}
	return t
}

// Fields for values that a language model may type without seeing them.
var (
	credentialVariables = text(
		"credential",
		"Login",
		"A credential of type env: the model writes %NAME%, and the value is typed.",
	).ref("credential")
	extraVariables = object(
		"variables",
		"Variables",
		"More values that the model does not see. Passwords belong in a credential.",
	).widget("keyvalue").advanced()
)

// oneOf returns the type with the fields of which a node must have exactly one.
func (t Type) oneOf(fields ...string) Type {
	t.OneOf = fields
	return t
}

// examples returns the type with examples.
func (t Type) examples(data, output string) Type {
	t.Example, t.ExampleOutput = data, output
	return t
}

var browserTypes = []Type{
	browserType(
		"navigate",
		"Open page",
		"Compass",
		"Opens a page in the execution's browser session.",
		[]string{"goto", "visit", "url", "website", "browse"},
		[]Field{
			text("session_id", "Session", "").required(),
			number("status", "Status", "Of the HTTP response.").allowKind("null"),
			anything("download", "Download", "Set if the URL is a file."),
		},
		text("url", "URL", "").required(),
		choice("wait_until", "Wait until", "", "load", "domcontentloaded", "networkidle", "commit").defaultsTo("load").advanced(),
	).
		examples(`{"url":"https://shop.example"}`, `{"session_id":"session-06f1q2s3t4v5a6b7c8d9","url":"https://shop.example/","title":"Shop","status":200}`),
	browserType(
		"click",
		"Click",
		"MousePointerClick",
		"Clicks an element of the page.",
		[]string{"press", "button", "link", "tap"},
		nil,
		selector("The element.").required(),
		choice("button", "Button", "Of the mouse.", "left", "right", "middle").defaultsTo("left").advanced(),
	).
		examples(`{"selector":"text=Buy"}`, `{"url":"https://shop.example/cart","title":"Cart"}`),
	browserType(
		"type",
		"Type text",
		"Keyboard",
		"Types text into a field.",
		[]string{"fill", "input", "write", "enter"},
		nil,
		selector("The field.").required(),
		text("text", "Text", "").widget("textarea").required(),
		boolean("clear", "Empty it first", "").defaultsTo(false),
		number("delay", "Delay", "Between keys.").unit("ms").advanced(),
	).
		examples(`{"selector":"#email","text":"{{contact.email}}","clear":true}`, `{"url":"https://shop.example/login","title":"Log in"}`),
	browserType(
		"press",
		"Press key",
		"Command",
		"Presses a key, such as Enter or Control+A.",
		[]string{"keyboard", "shortcut", "enter", "submit"},
		nil,
		text("key", "Key", "Such as Enter or Control+A.").required(),
		selector("Where to press it."),
	).
		examples(`{"key":"Enter"}`, `{"url":"https://shop.example/search","title":"Results"}`),
	browserType(
		"select",
		"Select option",
		"ListChecks",
		"Selects options of a list by value or label.",
		[]string{"dropdown", "option", "choose"},
		[]Field{list("values", "Values", "The values now selected.")},
		selector("The list.").required(),
		text("value", "Value", ""),
		list("values", "Values", "For a list that allows several.").widget("chips").advanced(),
		text("label", "Label", ""),
	).
		examples(`{"selector":"#country","label":"Germany"}`, `{"values":["DE"],"url":"https://shop.example/address","title":"Address"}`),
	browserType(
		"extract",
		"Read from page",
		"TextSelect",
		"Reads text, HTML, a value or an attribute from the page, or what an instruction asks for.",
		[]string{"scrape", "get", "read", "text", "html", "ai", "extract"},
		[]Field{anything("value", "Value", "The text, a list if all is set, or what the schema describes.")},
		selector("What to read."),
		text("attribute", "Attribute", "Of the selector: text, html, value, or the name of an attribute.").defaultsTo("text"),
		boolean("all", "All", "Every element that the selector matches, as a list.").defaultsTo(false),
		text("instruction", "Instruction", "In place of a selector: what the language model reads from the page.").widget("textarea"),
		object("schema", "Answer format", "Of an instruction: a JSON Schema of the value. Without it, the value is a text.").widget("schema").advanced(),
	).
		oneOf("selector", "instruction").
		examples(`{"selector":".price","all":true}`, `{"value":["9.90","12.50"],"url":"https://shop.example/","title":"Shop"}`),
	needsModel(
		browserType(
			"act",
			"Act on page",
			"Sparkles",
			"Has the language model carry out an instruction on the page.",
			[]string{"ai", "instruction", "agent", "click", "fill", "form", "stagehand"},
			[]Field{
				list("actions", "Actions", "What was done."),
				boolean("cached", "Cached", "The actions of an earlier time were repeated without the model."),
			},
			text("instruction", "Instruction", "What to do on this page. %name% stands for the value of a variable.").widget("textarea").required(),
			credentialVariables,
			extraVariables,
			boolean("cache", "Repeat without the model", "Where the same instruction was carried out before and its elements are still there.").
				defaultsTo(true).
				advanced(),
		).
			examples(
				`{"instruction":"Sign in as %USER% with %PASSWORD%.","credential":"shop-login"}`,
				`{"actions":[{"action":"click","selector":"role=button[name=\"Sign in\"]","description":"Sign `+
					`in."}],"cached":false,"url":"https://shop.example/account","title":"Account"}`,
			),
	),
	needsModel(
		browserType(
			"observe",
			"Find actions",
			"ScanSearch",
			"Has the language model find what can be done on the page, without doing it.",
			[]string{"ai", "instruction", "look", "elements", "find"},
			[]Field{list("actions", "Actions", "What could be done, the best first.").required()},
			text("instruction", "Instruction", "What to look for.").widget("textarea").required(),
		).
			examples(
				`{"instruction":"How can the order be cancelled?"}`,
				`{"actions":[{"action":"click","selector":"role=button[name=\"Cancel order\"]",`+
					`"description":"Cancel the order."}],"url":"https://shop.example/orders/17","title":"Order 17"}`,
			),
	),
	needsModel(
		browserType(
			"browse",
			"Browse to a goal",
			"Route",
			"Has the language model browse until it has reached a goal.",
			[]string{"ai", "agent", "goal", "navigate", "autonomous", "computer use"},
			[]Field{
				choice("status", "Status", "", "done", "stuck", "limit").required(),
				anything("result", "Result", "A text, or what the answer format describes.").required(),
				text("reason", "Reason", "Why the goal was not reached."),
				list("steps", "Steps", "What was done.").required(),
				text("session_id", "Session", "").required(),
				text("browse_id", "Id", ""),
			},
			text("goal", "Goal", "What to reach. %name% stands for the value of a variable.").widget("textarea").required(),
			text("url", "First page", "Without it, the page that is open."),
			list("hosts", "Hosts", "Where it may go, such as shop.example and *.shop.example. Without it, the domain of the first page.").widget("chips"),
			credentialVariables,
			extraVariables,
			object("output_schema", "Answer format", "A JSON Schema of the result.").widget("schema").advanced(),
			boolean("takeover", "Ask for a person", "When it is stuck; afterwards it goes on.").defaultsTo(true).advanced(),
			number("max_steps", "Steps", "The maximum number.").bounds(1, 100).defaultsTo(25).advanced(),
			number("max_tokens", "Tokens", "The maximum that the model reads and writes.").bounds(1000, 5_000_000).defaultsTo(500_000).advanced(),
		).
			examples(
				`{"goal":"Download the newest invoice.","url":"https://shop.example/","credential":"shop-login"}`,
				`{"status":"done","result":"The invoice 17 was downloaded.","reason":"","steps":[{"step":1,`+
					`"action":"click","description":"Open the account."}],`+
					`"session_id":"session-06f1q2s3t4v5a6b7c8d9","url":"https://shop.example/account","title":"Account"}`,
			),
	),
	browserType(
		"screenshot",
		"Screenshot",
		"Camera",
		"Takes a screenshot of the page or of an element.",
		[]string{"image", "capture", "picture"},
		[]Field{text("image", "Image", "A data URL.").required()},
		selector("Only this element."),
		boolean("full_page", "Whole page", "").defaultsTo(false),
	).
		examples(`{"full_page":true}`, `{"image":"data:image/png;base64,iVBORw0KGgo=","url":"https://shop.example/","title":"Shop"}`),
	browserType(
		"scroll",
		"Scroll",
		"ArrowDownUp",
		"Scrolls the page, or scrolls an element into view.",
		[]string{"down", "up", "view"},
		[]Field{number("x", "X", "In pixels."), number("y", "Y", "In pixels.")},
		selector("The element to scroll into view."),
		choice("direction", "Direction", "", "up", "down", "left", "right", "top", "bottom"),
		number("amount", "Amount", "").unit("px"),
	).
		examples(`{"direction":"bottom"}`, `{"x":0,"y":2400,"url":"https://shop.example/","title":"Shop"}`),
	browserType(
		"wait-for",
		"Wait for element",
		"Hourglass",
		"Waits for an element of the page, for a URL, or until a download is stored.",
		[]string{"appear", "visible", "load", "until", "download", "file"},
		[]Field{anything("download", "Download", "id, name, url, size and status of the file, if download is set.")},
		selector("The element."),
		choice("state", "State", "", "attached", "detached", "visible", "hidden").defaultsTo("visible"),
		text("url", "URL", "An exact URL, or a pattern with *."),
		boolean("download", "A download", "Until the next download is stored.").defaultsTo(false),
		number("timeout", "Timeout", "").unit("ms").advanced(),
	).
		examples(`{"selector":"#result","state":"visible"}`, `{"url":"https://shop.example/search","title":"Results"}`),
	browserType(
		"evaluate",
		"Run script in page",
		"SquareTerminal",
		"Runs JavaScript in the page.",
		[]string{"javascript", "js", "eval", "console", "script"},
		[]Field{anything("value", "Value", "The returned value.")},
		text("script", "Script", "An expression, or a function body that can use args. Templates are passed as arguments.").widget("javascript").required(),
		anything("args", "Arguments", "").advanced(),
	).
		examples(`{"script":"document.querySelectorAll('a').length"}`, `{"value":42,"url":"https://shop.example/","title":"Shop"}`),
}

var peopleTypes = []Type{
	{
		Name:     "approval",
		Label:    "Approval",
		Group:    "People",
		Icon:     "UserCheck",
		Docs:     "workflows.md#a-person-in-between",
		Summary:  "Waits for a person to approve or reject, or to take over a browser session.",
		Synonyms: []string{"human", "confirm", "ask", "decide", "review", "takeover", "manual"},
		Data: []Field{
			text("title", "Title", "What to decide."),
			text("message", "Message", "Details for the person.").widget("textarea"),
			boolean("comment_required", "Comment required", "Approving requires a comment. By default, if a message has no other text."),
			number("timeout", "Timeout", "The default is 30 days.").bounds(0, maxWaitSeconds).unit("s").advanced(),
			text("session_id", "Browser session", "The person takes over this session; the timeout is then 1 to 3600 seconds.").ref("session").advanced(),
		},
		Handles: []string{"approved", "rejected", "timeout"},
		Normal:  "approved",
		Output: []Field{
			choice("decision", "Decision", "", "approved", "rejected", "timeout").required(),
			text("comment", "Comment", ""),
			text("by", "By", "Who decided."),
		},
		Example:       `{"title":"Refund {{amount}}?","message":"{{contact.name}} asks for it."}`,
		ExampleOutput: `{"decision":"approved","comment":"a good customer","by":"bob@example.com"}`,
	},
}
