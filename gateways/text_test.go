package gateways

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// TestTextOfMessages: what people see as the text of a message is its text.
func TestTextOfMessages(t *testing.T) {
	slackMessage := func(content string) string {
		return `{"type":"event_callback","event_id":"Ev","event":{"type":"message","user":"U1",` +
			`"channel":"D1","ts":"1.5",` +
			content + `}}`
	}
	discordCommand := func(data string) string {
		return `{"type":2,"id":"7","channel_id":"64","token":"T","user":{"id":"1","username":"ada"},"data":{"id":"5",` +
			data + `}}`
	}
	onMessage := func(message string) string {
		return discordCommand(`"name":"Report","type":3,"target_id":"9","resolved":{"messages":{"9":{"id":"9",` +
			`"author":{"id":"2","username":"bob"},` + message + `}}}`)
	}
	for _, c := range []struct {
		platform, name, body, want string // want "": no message
		files                      int
	}{
		{
			platform: "slack",
			name:     "markup",
			body: slackMessage(`"text":"<@U2|ada> <#C1|general> <!here> <https://e.example/a?b=1&amp;c=2|the ` +
				`page> <https://e.example> <mailto:a@e.example|a@e.example> 1 &lt; 2 &amp; 3"`),
			want: "@ada #general @here the page (https://e.example/a?b=1&c=2) " +
				"https://e.example a@e.example 1 < 2 & 3",
		},
		{
			platform: "slack",
			name:     "groups, dates and unknown names",
			body: slackMessage(`"text":"<@U2> <#C1> <!subteam^S1|@ops> <!subteam^S2> ` +
				`<!date^1392734382^{date}|Feb 18> <b> &lt;@U3&gt;"`),
			want: "@U2 #C1 @ops @S2 Feb 18 <b> <@U3>",
		},
		{
			platform: "slack",
			name:     "a channel without a name",
			body:     slackMessage(`"text":"<#C1|> and <@U2|>"`),
			want:     "#C1 and @U2",
		},
		{
			platform: "slack",
			name:     "Slack's own",
			body:     strings.Replace(slackMessage(`"text":"Reminder: lunch"`), `"U1"`, `"USLACKBOT"`, 1),
		},
		{
			platform: "slack",
			name:     "code and quotes",
			body: slackMessage(`"text":"","blocks":[{"type":"rich_text",` +
				`"elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"a < b"}]},` +
				`{"type":"rich_text_quote","elements":[{"type":"text","text":"he said"},{"type":"broadcast",` +
				`"range":"here"},{"type":"date","timestamp":1,"format":"{date}","fallback":" Feb 18"}]}]}]`),
			want: "a < b\nhe said@here Feb 18",
		},
		{
			platform: "slack",
			name:     "forwarded",
			body: slackMessage(`"text":"","attachments":[{"is_share":true,"author_name":"Bob","text":"The ` +
				`*oven* is <https://e.example|broken>","fallback":"[date] Bob: The oven","files":[{"id":"F1",` +
				`"url_private":"https://files.slack.com/F1"}]}]`),
			want:  "The *oven* is broken (https://e.example)",
			files: 1,
		},
		{
			platform: "slack",
			name:     "forwarded with a comment",
			body: slackMessage(`"text":"Look","attachments":[{"is_msg_unfurl":true,` +
				`"message_blocks":[{"message":{"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"It &amp; ` +
				`they"}}]}}]},{"from_url":"https://e.example","title":"A preview"}]`),
			want: "Look\nIt & they",
		},
		{
			platform: "slack",
			name:     "null text",
			body:     slackMessage(`"text":null,"attachments":[{"fallback":"Build <https://e.example|7> failed"}]`),
			want:     "Build 7 (https://e.example) failed",
		},
		{
			platform: "slack",
			name:     "rich text",
			body: slackMessage(`"text":"","blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section",` +
				`"elements":[{"type":"text","text":"Hello "},{"type":"user","user_id":"U2"},{"type":"text","text":" ` +
				`see "},{"type":"link","url":"https://e.example","text":"this"},{"type":"emoji","name":"wave"}]},` +
				`{"type":"rich_text_list","elements":[{"type":"rich_text_section","elements":[{"type":"text",` +
				`"text":"one"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"two"}]}]}]}]`),
			want: "Hello @U2 see this (https://e.example):wave:\n- one\n- two",
		},
		{
			platform: "slack",
			name:     "blocks",
			body: slackMessage(`"blocks":[{"type":"header","text":{"type":"plain_text","text":"Order 7"}},` +
				`{"type":"divider"},{"type":"section","fields":[{"type":"mrkdwn","text":"*Sum*"},{"type":"mrkdwn",` +
				`"text":"7 &lt; 8"}]},{"type":"image","alt_text":"A cake","image_url":"https://e.example/i"},` +
				`{"type":"context","elements":[{"type":"mrkdwn","text":"by <@U2>"}]},{"type":"table",` +
				`"rows":[[{"type":"raw_text","text":"a"},{"type":"raw_text","text":"b"}]]},{"type":"actions",` +
				`"elements":[{"type":"button","text":{"type":"plain_text","text":"Buy"}}]}]`),
			want: "Order 7\n*Sum*\n7 < 8\nA cake\nby @U2\na | b\nBuy",
		},
		{platform: "slack", name: "nothing", body: slackMessage(`"text":"","blocks":[],"attachments":[]`)},
		{
			platform: "slack",
			name:     "odd blocks",
			body:     slackMessage(`"text":"Hi","blocks":{"type":7},"attachments":null`),
			want:     "Hi",
		},

		{
			platform: "discord",
			name:     "message command",
			body: onMessage(`"content":"Where is <@3>? <:cake:12> <#4>","mentions":[{"id":"3","username":"cy",` +
				`"global_name":"Cy"}],"attachments":[{"id":"1","filename":"a.png","url":"https://e.example/a.png"}]`),
			want:  "Where is @Cy? :cake: #4",
			files: 1,
		},
		{
			platform: "discord",
			name:     "embeds",
			body: onMessage(`"content":"","embeds":[{"type":"rich","title":"Build 7","description":"failed",` +
				`"fields":[{"name":"Branch","value":"main"}],"url":"https://e.example"}]`),
			want: "Build 7\nfailed\nBranch: main\nhttps://e.example",
		},
		{
			platform: "discord",
			name:     "preview",
			body:     onMessage(`"content":"https://e.example","embeds":[{"type":"link","title":"The page"}]`),
			want:     "https://e.example",
		},
		{
			platform: "discord",
			name:     "sticker",
			body:     onMessage(`"content":"","sticker_items":[{"id":"1","name":"Wave"}]`),
			want:     "[sticker: Wave]",
		},
		{
			platform: "discord",
			name:     "forwarded",
			body: onMessage(`"content":"","message_snapshots":[{"message":{"content":"The oven is broken",` +
				`"attachments":[{"id":"1","filename":"a.png"}]}}]`),
			want:  "The oven is broken",
			files: 1,
		},
		{
			platform: "discord",
			name:     "poll",
			body: onMessage(`"content":"","poll":{"question":{"text":"When?"},` +
				`"answers":[{"poll_media":{"text":"Mon"}},{"poll_media":{"text":"Tue"}}]}`),
			want: "[poll: When? (Mon / Tue)]",
		},
		{
			platform: "discord",
			name:     "file",
			body:     onMessage(`"content":"","attachments":[{"id":"1","filename":"a.png"}]`),
			want:     "[file: a.png]",
			files:    1,
		},
		{platform: "discord", name: "message without content", body: onMessage(`"content":""`), want: "/Report"},
		{
			platform: "discord",
			name:     "user command",
			body: discordCommand(
				`"name":"Greet","type":2,"target_id":"3","resolved":{"users":{"3":{"id":"3","username":"cy"}}}`,
			),
			want: "/Greet @cy",
		},
		{
			platform: "discord",
			name:     "options",
			body: discordCommand(`"name":"give","options":[{"name":"to","type":6,"value":"3"},{"name":"role","type":9,"value":"5"},{"name":"in","type":7,"value":"4"},{"name":"note","type":3,"value":"for <@3>"}],
			"resolved":{"users":{"3":{"id":"3","global_name":"Cy"}},"roles":{"5":{"name":"Bakers"}},"channels":{"4":{"name":"general"}}}`),
			want: "to: @Cy\nrole: @Bakers\nin: #general\nnote: for @Cy",
		},
	} {
		config, p := signers[c.platform]([]byte(c.body), time.Now())
		got, err := receivers[c.platform].parsePost(store.OpenGateway{Config: config}, p, time.Now())
		text, files := "", 0
		if len(got.Messages) == 1 {
			text, files = got.Messages[0].Text, len(got.Messages[0].Attachments)
		}
		if err != nil || text != c.want || files != c.files || (c.want == "") != (len(got.Messages) == 0) {
			t.Errorf("%s, %s: %q, %d files, %v; want %q", c.platform, c.name, text, files, err, c.want)
		}
	}
}

// TestTextOfTwilioMessages parses forms of SMS and WhatsApp.
func TestTextOfTwilioMessages(t *testing.T) {
	for form, want := range map[string]string{
		"Body=":                "",
		"Body=&NumMedia=0":     "",
		"Body=+%0A&NumMedia=0": "",
		"Body=Yes":             "Yes",
		"Body=&NumMedia=1&MediaUrl0=https%3A%2F%2Fe.example&MediaContentType0=image%2Fjpeg": "[image]",
		"Body=&Latitude=52.5&Longitude=13.4":                                                "[location: 52.5, 13.4]",
		"Body=&ButtonText=Confirm&ButtonPayload=yes-7":                                      "Confirm",
		"Body=&ListId=cake-1&ListTitle=A+cake":                                              "A cake",
		"Latitude=52.5&" +
			"Longitude=13.4&Label=Bakery": "[location: Bakery: 52.5, 13.4]",
		"Body=&InteractiveData=%7B%22size%22%3A3%7D": `{"size":3}`,
	} {
		values, _ := url.ParseQuery("MessageSid=SM1&From=whatsapp%3A%2B15551234567&SmsStatus=received&" + form)
		mac := hmac.New(sha1.New, []byte("t"))
		mac.Write([]byte(hookURL + twilioData(values)))
		p := Post{
			URL:    hookURL,
			Body:   []byte(values.Encode()),
			Header: http.Header{"X-Twilio-Signature": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}},
		}
		parsed, err := twilioWhatsApp.parsePost(
			store.OpenGateway{Config: agent.GatewayConfig{AuthToken: "t"}},
			p,
			time.Now(),
		)
		text := ""
		if len(parsed.Messages) == 1 {
			text = parsed.Messages[0].Text
		}
		if err != nil || text != want || (want == "") != (len(parsed.Messages) == 0) {
			t.Errorf("%s: %q, %d messages, %v", form, text, len(parsed.Messages), err)
		}
	}
}
