package gateways

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"satchel/agent"
	"satchel/store"
)

// update is an update for a bot, see https://core.telegram.org/bots/api#update.
// Everything except messages is ignored.
type update struct {
	ID          int64            `json:"update_id"`
	Message     *telegramMessage `json:"message"`
	Edited      *telegramMessage `json:"edited_message"`
	ChannelPost *telegramMessage `json:"channel_post"`
	EditedPost  *telegramMessage `json:"edited_channel_post"`
}

type telegramMessage struct {
	ID         int64         `json:"message_id"`
	Topic      int64         `json:"message_thread_id"`
	InTopic    bool          `json:"is_topic_message"`
	From       *telegramUser `json:"from"`
	SenderChat *telegramChat `json:"sender_chat"`
	Chat       telegramChat  `json:"chat"`
	EditDate   int64         `json:"edit_date"`
	MediaGroup string        `json:"media_group_id"`
	ReplyTo    *struct {
		ID int64 `json:"message_id"`
	} `json:"reply_to_message"`
	Forwarded json.RawMessage `json:"forward_origin"`
	// IsAutomatic is set for a channel's post that Telegram repeated in its group.
	IsAutomatic bool `json:"is_automatic_forward"`
	// MovedTo and MovedFrom are the other id of a group that became a supergroup.
	MovedTo   int64 `json:"migrate_to_chat_id"`
	MovedFrom int64 `json:"migrate_from_chat_id"`

	Text      string         `json:"text"`
	Caption   string         `json:"caption"`
	Entities  []entity       `json:"entities"`         // of the text
	InCaption []entity       `json:"caption_entities"` // of the caption
	Photo     []telegramFile `json:"photo"`            // the same photo in several sizes
	Document  *telegramFile  `json:"document"`
	Audio     *telegramFile  `json:"audio"`
	Voice     *telegramFile  `json:"voice"`
	Video     *telegramFile  `json:"video"`
	VideoNote *telegramFile  `json:"video_note"`
	Animation *telegramFile  `json:"animation"`
	Sticker   *telegramFile  `json:"sticker"`
	Location  *struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	} `json:"location"`
	Contact *struct {
		Phone     string `json:"phone_number"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name"`
	} `json:"contact"`
	telegramOther
}

// telegramOther is content that is neither text nor a file.
type telegramOther struct {
	Venue *struct {
		Title   string `json:"title"`
		Address string `json:"address"`
	} `json:"venue"` // in addition to location
	Poll *struct {
		Question string           `json:"question"`
		Options  []telegramOption `json:"options"`
	} `json:"poll"`
	Checklist *struct {
		Title string           `json:"title"`
		Tasks []telegramOption `json:"tasks"`
	} `json:"checklist"`
	Dice *struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	} `json:"dice"`
	Game      *telegramTitled `json:"game"`
	Invoice   *telegramTitled `json:"invoice"`
	Story     *struct{}       `json:"story"`
	PaidMedia *struct{}       `json:"paid_media"`
}

type telegramOption struct {
	Text string `json:"text"`
}

// entity is a part of a text; offset and length count UTF-16 code units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"` // of a text_link
}

type telegramTitled struct {
	Title string `json:"title"`
}

type telegramUser struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
}

type telegramChat struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"` // private, group, supergroup, channel
	Title    string `json:"title"`
	Username string `json:"username"`
}

type telegramFile struct {
	ID       string `json:"file_id"`
	Name     string `json:"file_name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"file_size"`
	Emoji    string `json:"emoji"` // of a sticker
}

// readUpdate parses an update of a bot and returns it with its id, or 0 if it is
// invalid. An update whose message has an unknown form has no message.
func readUpdate(bot string, raw []byte) (int64, Parsed) {
	var id struct {
		ID int64 `json:"update_id"`
	}
	if json.Unmarshal(raw, &id) != nil || id.ID <= 0 {
		return 0, Parsed{}
	}
	parsed := Parsed{EventID: bot + "/" + strconv.FormatInt(id.ID, 10), Payload: json.RawMessage(raw)}
	var u update
	if json.Unmarshal(raw, &u) != nil {
		return id.ID, parsed
	}
	m := cmp.Or(u.Message, u.Edited, u.ChannelPost, u.EditedPost)
	if m == nil {
		return id.ID, parsed
	}
	chat := strconv.FormatInt(m.Chat.ID, 10)
	switch {
	case m.MovedTo != 0:
		parsed.Moved = store.MovedThread{From: chat, To: strconv.FormatInt(m.MovedTo, 10)}
	case m.MovedFrom != 0:
		parsed.Moved = store.MovedThread{From: strconv.FormatInt(m.MovedFrom, 10), To: chat}
	}
	if in, ok := m.inbound(bot, m == u.Edited || m == u.EditedPost); ok {
		parsed.Messages, parsed.Payload = []agent.Inbound{in}, nil
	}
	return id.ID, parsed
}

// inbound converts a message by a person, a group or a channel. It returns
// false for service messages, those of other bots, and edits without a text,
// such as each position of a live location.
func (m *telegramMessage) inbound(bot string, edited bool) (agent.Inbound, bool) {
	text, files := m.content()
	from, ok := m.sender()
	if edited && cmp.Or(m.Text, m.Caption) == "" {
		return agent.Inbound{}, false
	}
	if !ok || text == "" || m.ID == 0 || m.Chat.ID == 0 {
		return agent.Inbound{}, false
	}
	chat, number := strconv.FormatInt(m.Chat.ID, 10), strconv.FormatInt(m.ID, 10)
	in := agent.Inbound{
		ID:     bot + "/" + chat + "/" + number,
		Thread: chat,
		Text:   text,
		From:   from,
	}
	facts := map[string]string{
		"message_id":     number,
		"chat_id":        chat,
		"chat_type":      m.Chat.Type,
		"chat_title":     m.Chat.Title,
		"media_group_id": m.MediaGroup,
	}
	if m.InTopic && m.Topic != 0 {
		facts["topic_id"] = strconv.FormatInt(m.Topic, 10)
		in.Thread += ":" + facts["topic_id"]
	}
	if edited {
		facts["edited"] = "true"
		in.ID += "/" + strconv.FormatInt(m.EditDate, 10)
	}
	if m.ReplyTo != nil && m.ReplyTo.ID != 0 {
		facts["reply_to"] = strconv.FormatInt(m.ReplyTo.ID, 10)
	}
	if len(m.Forwarded) > 0 {
		facts["forwarded"] = "true"
	}
	if m.IsAutomatic {
		facts["auto_submitted"] = reasonAutomatic
	}
	if !edited && len(files) > 0 {
		in.Album = m.MediaGroup
	}
	in.Metadata, in.Attachments = metadata(facts), files
	return in, true
}

// sender returns the author of a message. Someone who writes in the name of a
// chat is that chat.
func (m *telegramMessage) sender() (agent.ContactChange, bool) {
	account := func(id int64, name, username string) agent.ContactChange {
		c := agent.ContactChange{
			ExternalID: agent.Some(agent.TelegramContact + strconv.FormatInt(id, 10)),
			Name:       agent.Some(strings.TrimSpace(name)),
		}
		if username != "" {
			c.Telegram = agent.Some("@" + username)
		}
		return c
	}
	switch {
	case m.SenderChat != nil && m.SenderChat.ID != 0:
		return account(m.SenderChat.ID, m.SenderChat.Title, m.SenderChat.Username), true
	case m.From != nil && m.From.ID != 0 && !m.From.IsBot:
		return account(
			m.From.ID,
			m.From.FirstName+" "+m.From.LastName,
			m.From.Username,
		), true
	case m.From == nil && m.Chat.Type == "channel":
		return account(m.Chat.ID, m.Chat.Title, m.Chat.Username), true
	}
	return agent.ContactChange{}, false
}

// content returns the text of a message and its files. Content without text is
// described in brackets.
func (m *telegramMessage) content() (string, []agent.Attachment) {
	var files []agent.Attachment
	named := ""
	add := func(kind string, f *telegramFile) {
		if f == nil || f.ID == "" {
			return
		}
		files = append(files, agent.Attachment{
			Type:     kind,
			ID:       f.ID,
			Name:     agent.Clip(f.Name, 500),
			MimeType: agent.Clip(f.MimeType, 200),
			Size:     f.Size,
		})
		named = "[" + kind + "]"
		if detail := cmp.Or(f.Name, f.Emoji); detail != "" {
			named = "[" + kind + ": " + agent.Clip(detail, 200) + "]"
		}
	}
	if n := len(m.Photo); n > 0 {
		add("photo", &m.Photo[n-1]) // the largest comes last
	}
	if m.Animation == nil { // an animation also has a document, for old clients
		add("document", m.Document)
	}
	add("animation", m.Animation)
	add("audio", m.Audio)
	add("voice", m.Voice)
	add("video", m.Video)
	add("video_note", m.VideoNote)
	add("sticker", m.Sticker)
	switch {
	case m.Location != nil:
		place := ""
		if m.Venue != nil {
			place = agent.Clip(strings.Join(nonEmpty(m.Venue.Title, m.Venue.Address), ", "), 500) + ": "
		}
		named = fmt.Sprintf("[location: %s%g, %g]", place, m.Location.Latitude, m.Location.Longitude)
	case m.Contact != nil:
		named = "[contact: " +
			strings.Join(strings.Fields(m.Contact.FirstName+" "+m.Contact.LastName+" "+m.Contact.Phone), " ") + "]"
	case named == "":
		named = m.description()
	}
	return cmp.Or(
		withLinks(m.Text, m.Entities),
		withLinks(m.Caption, m.InCaption),
		named,
	), files
}

// withLinks returns a text that also has the addresses of its links.
func withLinks(text string, entities []entity) string {
	units := utf16.Encode([]rune(text))
	for _, e := range slices.Backward(entities) { // which are in the order of the text
		end := e.Offset + e.Length
		if e.Type != "text_link" ||
			e.URL == "" ||
			e.Offset < 0 ||
			e.Length < 0 ||
			end > len(units) {
			continue
		}
		link := utf16.Encode([]rune(linkText(e.URL, string(utf16.Decode(units[e.Offset:end])))))
		units = slices.Replace(units, e.Offset, end, link...)
	}
	return string(utf16.Decode(units))
}

// description returns a description, in brackets, of content that is neither text nor a
// file. It returns "" for service messages.
func (o *telegramOther) description() string {
	inner := ""
	switch {
	case o.Poll != nil:
		inner = "poll: " + withOptions(o.Poll.Question, o.Poll.Options)
	case o.Checklist != nil:
		inner = "checklist: " + withOptions(o.Checklist.Title, o.Checklist.Tasks)
	case o.Dice != nil:
		inner = fmt.Sprintf("dice: %s %d", o.Dice.Emoji, o.Dice.Value)
	case o.Game != nil:
		inner = "game: " + o.Game.Title
	case o.Invoice != nil:
		inner = "invoice: " + o.Invoice.Title
	case o.Story != nil:
		inner = "story"
	case o.PaidMedia != nil:
		inner = "paid media"
	default:
		return ""
	}
	return "[" + agent.Clip(inner, 4000) + "]"
}

// withOptions returns a title followed by its options.
func withOptions(title string, options []telegramOption) string {
	texts := make([]string, len(options))
	for i, o := range options {
		texts[i] = o.Text
	}
	if len(texts) == 0 {
		return title
	}
	return title + " (" + strings.Join(texts, " / ") + ")"
}

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}
