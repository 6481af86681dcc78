package gateways

import (
	"cmp"
	"strings"

	"satchel/agent"
)

type discordUser struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
}

func (u discordUser) name() string {
	return cmp.Or(u.GlobalName, u.Username)
}

type discordFile struct {
	ID       string `json:"id"`
	Name     string `json:"filename"`
	MimeType string `json:"content_type"`
	Size     int64  `json:"size"`
	URL      string `json:"url"`
}

func (f discordFile) attachment() agent.Attachment {
	return agent.Attachment{
		ID:       f.ID,
		Name:     f.Name,
		MimeType: f.MimeType,
		Size:     f.Size,
		URL:      f.URL,
	}
}

// discordNamed is a channel, a role or a sticker.
type discordNamed struct {
	Name string `json:"name"`
}

// discordResolved is what the ids of a command are.
type discordResolved struct {
	Attachments map[string]discordFile    `json:"attachments"` // of options of this type
	Messages    map[string]discordContent `json:"messages"`
	Users       map[string]discordUser    `json:"users"`
	Channels    map[string]discordNamed   `json:"channels"`
	Roles       map[string]discordNamed   `json:"roles"`
}

// discordNames are texts of mentions, such as "@Ada", by "@" and the id of a user, "@&"
// and a role's, or "#" and a channel's.
type discordNames map[string]string

func (r *discordResolved) names() discordNames {
	names := discordNames{}
	for id, u := range r.Users {
		names["@"+id] = "@" + u.name()
	}
	for id, c := range r.Channels {
		names["#"+id] = "#" + c.Name
	}
	for id, role := range r.Roles {
		names["@&"+id] = "@" + role.Name
	}
	return names
}

// discordMentionable are the marks of the mentions that options of a type are.
var discordMentionable = map[int]string{
	6: "@",
	7: "#",
	8: "@&",
	9: "@",
}

var (
	discordMention = agent.Pattern(`<(@&|@|#)!?([0-9]+)>`)
	discordEmoji   = agent.Pattern(`<a?(:\w+:)[0-9]+>`)
)

// replace replaces the mentions in a text by names, as far as they are known.
func (n discordNames) replace(text string) string {
	text = discordMention().ReplaceAllStringFunc(text, func(mention string) string {
		found := discordMention().FindStringSubmatch(mention)
		return cmp.Or(
			n[found[1]+found[2]],
			n["@&"+found[2]],
			found[1]+found[2],
		)
	})
	return discordEmoji().ReplaceAllString(text, "$1")
}

// discordContent is a message, see https://discord.com/developers/docs/resources/message.
type discordContent struct {
	ID          string         `json:"id"`
	Author      discordUser    `json:"author"`
	Content     string         `json:"content"`
	Mentions    []discordUser  `json:"mentions"`
	Attachments []discordFile  `json:"attachments"`
	Stickers    []discordNamed `json:"sticker_items"`
	Embeds      []struct {
		Type        string `json:"type"`
		Title       string `json:"title"`
		Description string `json:"description"`
		URL         string `json:"url"`
		Fields      []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"fields"`
		Footer struct {
			Text string `json:"text"`
		} `json:"footer"`
	} `json:"embeds"`
	Poll *struct {
		Question telegramOption `json:"question"`
		Answers  []struct {
			Media telegramOption `json:"poll_media"`
		} `json:"answers"`
	} `json:"poll"`
	Snapshots []struct {
		Message discordContent `json:"message"`
	} `json:"message_snapshots"` // of messages that it forwards
}

// text returns the text of a message: its own, or that of its embeds, and that of the
// messages it forwards. Other content is described in brackets.
func (m *discordContent) text(names discordNames) string {
	for _, u := range m.Mentions {
		names["@"+u.ID] = "@" + u.name()
	}
	texts := nonEmpty(m.Content)
	for i := range m.Embeds {
		e := &m.Embeds[i]
		if m.Content != "" && e.Type != "rich" { // the preview of a link
			continue
		}
		texts = append(texts, nonEmpty(e.Title, e.Description)...)
		for _, f := range e.Fields {
			texts = append(texts, strings.Join(nonEmpty(f.Name, f.Value), ": "))
		}
		texts = append(texts, nonEmpty(e.Footer.Text, e.URL)...)
	}
	for _, s := range m.Stickers {
		texts = append(texts, "[sticker: "+s.Name+"]")
	}
	if m.Poll != nil {
		options := make([]telegramOption, len(m.Poll.Answers))
		for i, a := range m.Poll.Answers {
			options[i] = a.Media
		}
		texts = append(texts, "[poll: "+withOptions(m.Poll.Question.Text, options)+"]")
	}
	for i := range m.Snapshots {
		texts = append(texts, nonEmpty(m.Snapshots[i].Message.text(names))...)
	}
	if len(texts) == 0 {
		for _, f := range m.Attachments {
			texts = append(texts, "[file: "+agent.Clip(f.Name, 200)+"]")
		}
	}
	return names.replace(strings.Join(texts, "\n"))
}

// files returns the files of a message and of those it forwards.
func (m *discordContent) files() (files []agent.Attachment) {
	for _, f := range m.Attachments {
		files = append(files, f.attachment())
	}
	for i := range m.Snapshots {
		files = append(files, m.Snapshots[i].Message.files()...)
	}
	return files
}
