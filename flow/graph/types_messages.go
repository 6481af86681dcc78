package graph

import "slices"

const (
	messagesDocs = "workflows.md#sending-messages"
	browserDocs  = "workflows.md#driving-a-browser"
)

func gatewayField(platform string) Field {
	return text("gateway_id", "Gateway", platform+" gateway to send through; the default one without it.").naming("gateway").more()
}

func message() Field {
	return text("message", "Text", "A long one becomes several messages.").as("textarea").must()
}

var messageTypes = []Type{
	{
		Name: "email", Label: "Email", Group: "Messages", Icon: "Mail", Docs: messagesDocs, Needs: []string{"gateway:email"},
		Summary: "Sends an email through Resend or SMTP.", Synonyms: []string{"mail", "resend", "smtp", "send", "newsletter"},
		Data: []Field{
			text("to", "To", "Addresses: a list, or text with commas.").also("list").as("chips").must(),
			text("subject", "Subject", ""),
			text("body", "Text", "").as("textarea"),
			truth("html", "HTML", "The text is HTML; what templates insert into it is escaped.").or(false),
			text("cc", "Copy", "").also("list").as("chips").more(),
			text("bcc", "Blind copy", "").also("list").as("chips").more(),
			text("reply_to", "Reply to", "").more(),
			gatewayField("Email"),
		},
		Output:  []Field{text("message_id", "Message", "").must(), anything("accepted", "Accepted", "The addresses that were accepted.").must()},
		Example: `{"to":"{{contact.email}}","subject":"Welcome","body":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":"4ef9a417","accepted":["ada@example.com"]}`,
	},
	{
		Name: "chatbot_a", Label: "Telegram", Group: "Messages", Icon: "Send", Docs: messagesDocs, Needs: []string{"gateway:telegram"},
		Summary: "Sends a Telegram message.", Synonyms: []string{"chat", "bot", "message", "send"},
		Data: []Field{
			text("to", "To", "A chat's id, @channel, or a conversation's external_thread_id.").also("number").must(),
			message(),
			text("parse_mode", "Formatting", "HTML, MarkdownV2 or Markdown.").more(),
			gatewayField("Telegram"),
		},
		Output:  []Field{anything("message_id", "Message", "").must(), anything("chat_id", "Chat", "").must()},
		Example: `{"to":"{{conversation.external_thread_id}}","message":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":12,"chat_id":4711}`,
	},
	{
		Name: "chatbot_b", Label: "WhatsApp", Group: "Messages", Icon: "MessageCircle", Docs: messagesDocs, Needs: []string{"gateway:whatsapp"},
		Summary: "Sends a WhatsApp message through Twilio.", Synonyms: []string{"twilio", "chat", "message", "send"},
		Data:    []Field{text("to", "To", "A number such as +4915112345678.").must(), message(), gatewayField("WhatsApp")},
		Output:  []Field{text("message_id", "Message", "").must(), text("to", "To", "").must()},
		Example: `{"to":"{{contact.phone}}","message":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":"SM1f0e8ae6","to":"+4915112345678"}`,
	},
	{
		Name: "sms", Label: "SMS", Group: "Messages", Icon: "Smartphone", Docs: messagesDocs, Needs: []string{"gateway:sms"},
		Summary: "Sends a text message through Twilio.", Synonyms: []string{"twilio", "text", "phone", "message", "send"},
		Data:    []Field{text("to", "To", "A number such as +4915112345678.").must(), message(), gatewayField("SMS")},
		Output:  []Field{text("message_id", "Message", "").must(), text("to", "To", "").must()},
		Example: `{"to":"{{contact.phone}}","message":"Your code is {{code}}"}`, ExampleOutput: `{"message_id":"SM1f0e8ae6","to":"+4915112345678"}`,
	},
	{
		Name: "team_chat", Label: "Slack", Group: "Messages", Icon: "Hash", Docs: messagesDocs, Needs: []string{"gateway:slack"},
		Summary: "Sends a Slack message to a channel or a person.", Synonyms: []string{"channel", "chat", "message", "send", "team"},
		Data: []Field{
			text("channel", "Channel", "An id such as C1, a person's U1, or a conversation's external_thread_id.").must(),
			message(),
			text("thread_ts", "Thread", "The message that this one answers.").more(),
			choice("format", "Formatting", "plain sends the text as it is, mrkdwn reads Slack's marks in it.", "plain", "mrkdwn").or("plain").more(),
			gatewayField("Slack"),
		},
		Output:  []Field{text("channel", "Channel", "").must(), text("ts", "Message", "").must()},
		Example: `{"channel":"C024BE91L","message":"New order from {{contact.name}}"}`, ExampleOutput: `{"channel":"C024BE91L","ts":"1700000000.000100"}`,
	},
	{
		Name: "community_chat", Label: "Discord", Group: "Messages", Icon: "MessagesSquare", Docs: messagesDocs, Needs: []string{"gateway:discord"},
		Summary: "Sends a Discord message, or answers a command.", Synonyms: []string{"channel", "chat", "message", "send", "community", "server"},
		Data: []Field{
			text("channel", "Channel", "An id, or a conversation's external_thread_id, which answers the command that waits there.").must(),
			message(),
			text("reply_to", "Reply to", "A message's id.").more(),
			gatewayField("Discord"),
		},
		Output:  []Field{text("message_id", "Message", "").must(), text("channel", "Channel", "").must()},
		Example: `{"channel":"{{conversation.external_thread_id}}","message":"Hello {{contact.name}}"}`, ExampleOutput: `{"message_id":"1102938475610293847","channel":"998877665544332211"}`,
	},
}

func selector(description string) Field {
	return text("selector", "Selector", description).as("selector")
}

// browserType is a type whose nodes drive a browser session; url and title are
// in the output of each.
func browserType(name, label, icon, summary string, synonyms []string, output []Field, data ...Field) Type {
	session := text("session_id", "Session", "Another session than the execution's own.").naming("session").more()
	return Type{Name: name, Label: label, Group: "Browser", Icon: icon, Docs: browserDocs, Needs: []string{"browser"}, Summary: summary, Synonyms: synonyms,
		Data: append(data, session), Output: slices.Concat(output, []Field{text("url", "URL", "Of the page."), text("title", "Title", "Of the page.")})}
}

// such sets the examples of a type.
func (t Type) such(data, output string) Type {
	t.Example, t.ExampleOutput = data, output
	return t
}

var browserTypes = []Type{
	browserType("navigate", "Open page", "Compass", "Opens a page in the execution's browser session.", []string{"goto", "visit", "url", "website", "browse"},
		[]Field{text("session_id", "Session", "").must(), number("status", "Status", "Of the HTTP answer.").also("null"), anything("download", "Download", "When the address is a file.")},
		text("url", "URL", "").must(), choice("wait_until", "Wait until", "", "load", "domcontentloaded", "networkidle", "commit").or("load").more()).
		such(`{"url":"https://shop.example"}`, `{"session_id":"session-06f1q2s3t4v5a6b7c8d9","url":"https://shop.example/","title":"Shop","status":200}`),
	browserType("click", "Click", "MousePointerClick", "Clicks an element of the page.", []string{"press", "button", "link", "tap"}, nil,
		selector("The element.").must(), choice("button", "Button", "Of the mouse.", "left", "right", "middle").or("left").more()).
		such(`{"selector":"text=Buy"}`, `{"url":"https://shop.example/cart","title":"Cart"}`),
	browserType("type", "Type text", "Keyboard", "Types text into a field.", []string{"fill", "input", "write", "enter"}, nil,
		selector("The field.").must(), text("text", "Text", "").as("textarea").must(), truth("clear", "Empty it first", "").or(false),
		number("delay", "Delay", "Between keys.").in("ms").more()).
		such(`{"selector":"#email","text":"{{contact.email}}","clear":true}`, `{"url":"https://shop.example/login","title":"Log in"}`),
	browserType("press", "Press key", "Command", "Presses a key, such as Enter or Control+A.", []string{"keyboard", "shortcut", "enter", "submit"}, nil,
		text("key", "Key", "Such as Enter or Control+A.").must(), selector("Where to press it.")).
		such(`{"key":"Enter"}`, `{"url":"https://shop.example/search","title":"Results"}`),
	browserType("select", "Choose option", "ListChecks", "Chooses options of a list by value or label.", []string{"dropdown", "option", "choose"},
		[]Field{list("values", "Values", "Those that are chosen now.")},
		selector("The list.").must(), text("value", "Value", ""), list("values", "Values", "Of a list that takes several.").as("chips").more(), text("label", "Label", "")).
		such(`{"selector":"#country","label":"Germany"}`, `{"values":["DE"],"url":"https://shop.example/address","title":"Address"}`),
	browserType("extract", "Read from page", "TextSelect", "Reads text, HTML, a value or an attribute from the page.", []string{"scrape", "get", "read", "text", "html"},
		[]Field{anything("value", "Value", "Text, or a list with all.")},
		selector("What to read.").must(), text("attribute", "Attribute", "text, html, value, or an attribute's name.").or("text"), truth("all", "All", "Every element that fits, as a list.").or(false)).
		such(`{"selector":".price","all":true}`, `{"value":["9.90","12.50"],"url":"https://shop.example/","title":"Shop"}`),
	browserType("screenshot", "Screenshot", "Camera", "Takes a picture of the page or of an element.", []string{"image", "capture", "picture"},
		[]Field{text("image", "Image", "A data URL.").must()},
		selector("Only this element."), truth("full_page", "Whole page", "").or(false)).
		such(`{"full_page":true}`, `{"image":"data:image/png;base64,iVBORw0KGgo=","url":"https://shop.example/","title":"Shop"}`),
	browserType("scroll", "Scroll", "ArrowDownUp", "Scrolls the page, or brings an element into view.", []string{"down", "up", "view"},
		[]Field{number("x", "X", "In pixels."), number("y", "Y", "In pixels.")},
		selector("Bring this into view."), choice("direction", "Direction", "", "up", "down", "left", "right", "top", "bottom"), number("amount", "Amount", "").in("px")).
		such(`{"direction":"bottom"}`, `{"x":0,"y":2400,"url":"https://shop.example/","title":"Shop"}`),
	browserType("wait-for", "Wait for element", "Hourglass", "Waits for an element of the page, or for an address.", []string{"appear", "visible", "load", "until"}, nil,
		selector("The element."), choice("state", "State", "", "attached", "detached", "visible", "hidden").or("visible"), text("url", "URL", "Exact, or a pattern with *."),
		number("timeout", "Give up after", "").in("ms").more()).
		such(`{"selector":"#result","state":"visible"}`, `{"url":"https://shop.example/search","title":"Results"}`),
	browserType("evaluate", "Run script in page", "SquareTerminal", "Runs JavaScript in the page.", []string{"javascript", "js", "eval", "console", "script"},
		[]Field{anything("value", "Value", "What it returns.")},
		text("script", "Script", "An expression or a function body with args. Templates in it are arguments.").as("javascript").must(), anything("args", "Arguments", "").more()).
		such(`{"script":"document.querySelectorAll('a').length"}`, `{"value":42,"url":"https://shop.example/","title":"Shop"}`),
}

var peopleTypes = []Type{
	{
		Name: "approval", Label: "Approval", Group: "People", Icon: "UserCheck", Docs: "workflows.md#a-person-in-between",
		Summary: "Waits until a person says yes or no, or takes a browser session over.", Synonyms: []string{"human", "confirm", "ask", "decide", "review", "takeover", "manual"},
		Data: []Field{
			text("title", "Title", "What is to be decided."),
			text("message", "Message", "What the person should know.").as("textarea"),
			number("timeout", "Give up after", "30 days without it.").within(0, longestWait).in("s").more(),
			text("session_id", "Browser session", "The person takes this session over; the timeout is 1 to 3600 seconds then.").naming("session").more(),
		},
		Handles: []string{"approved", "rejected", "timeout"}, Normal: "approved",
		Output:  []Field{choice("decision", "Decision", "", "approved", "rejected", "timeout").must(), text("comment", "Comment", ""), text("by", "By", "Who decided.")},
		Example: `{"title":"Refund {{amount}}?","message":"{{contact.name}} asks for it."}`, ExampleOutput: `{"decision":"approved","comment":"a good customer","by":"bob@example.com"}`,
	},
}
