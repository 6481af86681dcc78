package gateways

import (
	"cmp"
	"encoding/json"
	"strings"

	"satchel/agent"
)

// slackContent is what a message consists of, see
// https://docs.slack.dev/reference/events/message.
type slackContent struct {
	Text        string          `json:"text"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments []struct {
		slackContent        // of a message that is forwarded
		IsShare      bool   `json:"is_share"`
		IsUnfurl     bool   `json:"is_msg_unfurl"`
		Pretext      string `json:"pretext"`
		Title        string `json:"title"`
		Fallback     string `json:"fallback"`
		Fields       []struct {
			Title looseString `json:"title"`
			Value looseString `json:"value"`
		} `json:"fields"`
		Messages []struct {
			Message slackContent `json:"message"`
		} `json:"message_blocks"`
	} `json:"attachments"`
	Files []struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		MimeType string `json:"mimetype"`
		Size     int64  `json:"size"`
		URL      string `json:"url_private"`
	} `json:"files"`
}

// plain returns the text of a message without markup: its own, or that of its blocks,
// and that of the messages forwarded with it.
func (c *slackContent) plain() string {
	own := strings.TrimSpace(cmp.Or(slackPlain(c.Text), slackBlocks(c.Blocks)))
	texts := nonEmpty(own)
	for i := range c.Attachments {
		a := &c.Attachments[i]
		if own != "" && !a.IsShare && !a.IsUnfurl {
			continue // the preview of a link
		}
		text := a.plain()
		for _, m := range a.Messages {
			text = cmp.Or(text, m.Message.plain())
		}
		parts := nonEmpty(slackPlain(a.Pretext), slackPlain(a.Title), text)
		for _, f := range a.Fields {
			parts = append(parts, slackPlain(strings.Join(nonEmpty(string(f.Title), string(f.Value)), ": ")))
		}
		texts = append(texts, nonEmpty(cmp.Or(strings.Join(parts, "\n"), slackPlain(a.Fallback)))...)
	}
	return strings.Join(texts, "\n")
}

// files returns the files of a message and of those forwarded with it.
func (c *slackContent) files() (files []agent.Attachment) {
	for _, f := range c.Files {
		files = append(files, agent.Attachment{
			ID:       f.ID,
			Name:     f.Name,
			MimeType: f.MimeType,
			Size:     f.Size,
			URL:      f.URL,
		})
	}
	for i := range c.Attachments {
		files = append(files, c.Attachments[i].files()...)
	}
	return files
}

var slackUnescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

var slackMarkup = agent.Pattern(`<([@#!]?)([^<>|\n]+)(?:\|([^<>\n]*))?>`)

// slackPlain converts Slack's markup to text, see
// https://docs.slack.dev/messaging/formatting-message-text.
func slackPlain(text string) string {
	return slackUnescape.Replace(slackMarkup().ReplaceAllStringFunc(text, func(markup string) string {
		found := slackMarkup().FindStringSubmatch(markup)
		kind, id, label := found[1], found[2], found[3]
		switch {
		case kind == "" && !strings.Contains(id, ":"):
			return markup
		case kind == "":
			return linkText(id, label)
		case kind == "!" && strings.Contains(id, "^"): // a date or a group
			_, id, _ = strings.Cut(id, "^")
			return cmp.Or(label, "@"+id)
		case kind == "!":
			kind = "@"
		}
		return kind + strings.TrimPrefix(cmp.Or(label, id), kind)
	}))
}

// linkText returns a link as text: its label, and the address unless that says the same.
func linkText(address, label string) string {
	bare := address
	for _, scheme := range []string{"mailto:", "tel:", "https://", "http://"} {
		bare = strings.TrimPrefix(bare, scheme)
	}
	switch {
	case strings.TrimSuffix(label, "/") == strings.TrimSuffix(bare, "/"):
		return label
	case label == "" || label == address:
		return address
	}
	return label + " (" + address + ")"
}

// slackBlocks returns the text of blocks, see
// https://docs.slack.dev/reference/block-kit/blocks.
func slackBlocks(raw json.RawMessage) string {
	var blocks []any
	_ = json.Unmarshal(raw, &blocks) // nil for another form
	return strings.Join(blockTexts(blocks), "\n")
}

func blockTexts(blocks []any) (texts []string) {
	for _, b := range blocks {
		texts = append(texts, nonEmpty(strings.TrimSpace(blockText(b)))...)
	}
	return texts
}

// blockText returns the text of a block, an element or a text object.
func blockText(value any) string {
	object, ok := value.(map[string]any)
	if !ok {
		return ""
	}
	field := func(name string) string {
		text, _ := object[name].(string)
		return text
	}
	list := func(name string) []any {
		values, _ := object[name].([]any)
		return values
	}
	switch kind := field("type"); kind {
	case "text", "plain_text", "raw_text":
		return field("text")
	case "mrkdwn", "markdown":
		return slackPlain(field("text"))
	case "link":
		return linkText(field("url"), field("text"))
	case "user", "usergroup":
		return "@" + field(kind+"_id")
	case "channel":
		return "#" + field("channel_id")
	case "broadcast":
		return "@" + field("range")
	case "emoji":
		return ":" + field("name") + ":"
	case "date":
		return field("fallback")
	case "color":
		return field("value")
	case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
		var text strings.Builder
		for _, e := range list("elements") {
			text.WriteString(blockText(e))
		}
		return text.String()
	case "rich_text_list":
		if items := blockTexts(list("elements")); len(items) > 0 {
			return "- " + strings.Join(items, "\n- ")
		}
		return ""
	}
	texts := nonEmpty(
		blockText(object["title"]),
		blockText(object["label"]),
		blockText(object["text"]),
		blockText(object["description"]),
	)
	texts = append(texts, blockTexts(list("fields"))...)
	texts = append(texts, blockTexts(list("elements"))...)
	for _, row := range list("rows") { // of a table
		cells, _ := row.([]any)
		texts = append(texts, nonEmpty(strings.Join(blockTexts(cells), " | "))...)
	}
	return cmp.Or(strings.Join(texts, "\n"), field("alt_text"))
}
