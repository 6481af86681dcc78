package n8n

import (
	"fmt"
	"strings"
)

// noteChannel reports the channel by which a message is sent.
func (u *unit) noteChannel(channel string) {
	u.approximate(
		"CHANNEL",
		"It is sent by the agent's "+channel+" channel, which has to be connected; credentials of n8n are not used.",
	)
}

func convertTelegram(c *converter, u *unit) {
	if u.p.text("operation") == "sendAndWait" {
		convertSendAndWait(c, u)
		return
	}
	if u.p.text("operation") == "sendChatAction" {
		u.approximate("OPERATION", "Nobody is shown that an answer is being written; the input flows on.")
		convertNoOp(c, u)
		return
	}
	e := c.each(u)
	data := map[string]any{"to": e.textOf("chatId"), "message": e.textOf("text")}
	if mode := u.p.text("additionalFields.parse_mode"); mode == "HTML" || mode == "MarkdownV2" || mode == "Markdown" {
		data["parse_mode"] = mode
	}
	switch operation := u.p.or("operation", "sendMessage"); {
	case u.p.or("resource", "message") != "message":
		u.fail("OPERATION", telegramSends)
	case telegramFiles[operation]:
		e.fileLinks(data)
	case operation != "sendMessage":
		u.fail("OPERATION", telegramSends)
	}
	if u.p.or("replyMarkup", "none") != "none" {
		u.approximate("KEYBOARD", "The message is sent without its keyboard.")
	}
	u.noteChannel("Telegram")
	s := e.emit("chatbot_a", data)
	if !u.unsupported {
		at := fmt.Sprintf("nodes[%q]", u.id)
		s.ref = ref{
			fields: map[string]string{
				"result.message_id": "nodes." + u.id + ".message_id",
				"result.chat.id":    "nodes." + u.id + ".chat_id",
			},
			closed: true,
			js: fmt.Sprintf(
				"({ ok: true, result: { message_id: %s?.message_id, chat: { id: %s?.chat_id } } })",
				at, at,
			),
		}
	}
}

// telegramFiles are the operations that send files.
var telegramFiles = map[string]bool{
	"sendPhoto":      true,
	"sendDocument":   true,
	"sendVideo":      true,
	"sendAudio":      true,
	"sendAnimation":  true,
	"sendMediaGroup": true,
}

const telegramSends = "The Telegram channel sends text and links to files, and nothing else."

// fileLinks makes a message of the captions and links of the files that n8n sends by
// their addresses.
func (e *env) fileLinks(data map[string]any) {
	u, lines := e.u, []string{}
	add := func(caption, file any) {
		link := fmt.Sprint(e.value(file))
		if text, _ := file.(string); text == "" || !hasExpression(text) && !strings.Contains(text, "://") {
			u.fail("FILE", "The Telegram channel sends no files, only links to them, and this file has no address.")
		}
		if caption != nil && caption != "" {
			lines = append(lines, fmt.Sprint(e.value(caption)))
		}
		lines = append(lines, link)
	}
	switch media := u.p.objects("media.media"); {
	case u.p.flag("binaryData"):
		u.fail("FILE", "The Telegram channel sends no files, only links to them.")
	case len(media) > 0:
		for _, m := range media {
			add(m.at("additionalFields.caption"), m["media"])
		}
	default:
		add(u.p.at("additionalFields.caption"), u.p.at("file"))
	}
	if data["parse_mode"] != "HTML" {
		delete(data, "parse_mode") // Markdown would read a link's underscores
	}
	data["message"] = strings.Join(lines, "\n")
	if u.unsupported {
		return
	}
	u.approximate(
		"FILE",
		"The file is sent as a link, of which Telegram shows a preview; ids of files on "+
			"Telegram's servers are not links.",
	)
}

func convertSlack(c *converter, u *unit) {
	if u.p.text("operation") == "sendAndWait" {
		convertSendAndWait(c, u)
		return
	}
	e := c.each(u)
	if u.p.or("resource", "message") != "message" || u.p.or("operation", "post") != "post" {
		c.service(e)
		return
	}
	channel := u.p.at("channelId")
	if u.p.text("select") == "user" {
		channel = u.p.at("user")
	}
	if channel == nil {
		channel = u.p.at("channel")
	}
	data := map[string]any{
		"channel": e.value(channel),
		"message": e.textOf("text"),
		"format":  "mrkdwn",
	}
	if v := u.p.at("otherOptions.thread_ts.replyValues.thread_ts"); v != nil {
		data["thread_ts"] = fmt.Sprint(e.value(v))
	}
	if u.p.or("messageType", "text") != "text" {
		u.approximate("MESSAGE", "Only the text of the message is sent, without blocks and attachments.")
	}
	if text, ok := data["channel"].(string); ok &&
		text != "" &&
		!strings.Contains(text, "{{") &&
		strings.ToUpper(text) != text {
		u.approximate("CHANNEL_ID", "The channel is a name in n8n; here it is an id such as C0123456789.")
	}
	u.noteChannel("Slack")
	s := e.emit("team_chat", data)
	if !u.unsupported {
		s.ref.fields = map[string]string{"message.ts": "nodes." + u.id + ".ts"}
	}
}

func convertDiscord(c *converter, u *unit) {
	if u.p.text("operation") == "sendAndWait" {
		convertSendAndWait(c, u)
		return
	}
	e := c.each(u)
	data := map[string]any{"channel": e.textOf("channelId"), "message": e.textOf("content")}
	switch {
	case u.version < 2 || u.p.text("authentication") == "webhook":
		e.discordWebhook(data)
	case u.p.or("resource", "channel") != "message" || u.p.or("operation", "send") != "send":
		u.fail("OPERATION", "Only messages are sent; an http-request node can call Discord's API for everything else.")
	case u.p.text("sendTo") == "user":
		data["channel"] = e.textOf("userId")
	}
	if u.p.has("embeds.values") || u.p.has("files.values") {
		u.approximate("MESSAGE", "Only the text of the message is sent, without embeds and files.")
	}
	u.noteChannel("Discord")
	e.emit("community_chat", data)
}

// discordWebhook replaces a post to a webhook address with a message. The address is
// a secret and the only thing that identifies the channel.
func (e *env) discordWebhook(data map[string]any) {
	data["channel"] = ""
	if e.u.version < 2 {
		data["message"] = e.textOf("text")
	}
	e.u.approximate(
		"CHANNEL_ID",
		"n8n posts to a webhook address, which is a secret and is not imported. Name the channel by its id before "+
			"you activate the workflow.",
	)
	for name := range e.u.p.object("options") {
		if name != "wait" {
			e.u.approximate(
				"MESSAGE",
				"Only the text of the message is sent, without embeds, files, and a name and picture of its own.",
			)
		}
	}
}

func convertTwilio(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("resource", "sms") != "sms" {
		u.fail("OPERATION", "Calls are not made; an http-request node can call Twilio's API.")
	}
	kind, channel := "sms", "SMS"
	if u.p.flag("toWhatsapp") {
		kind, channel = "chatbot_b", "WhatsApp"
	}
	u.noteChannel(channel)
	e.emit(kind, map[string]any{"to": e.textOf("to"), "message": e.textOf("message")})
}

func convertWhatsApp(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("resource", "message") != "message" ||
		u.p.or("operation", "send") != "send" ||
		u.p.or("messageType", "text") != "text" {
		u.fail("OPERATION", "Only text messages are sent.")
	}
	u.approximate("CHANNEL", "It is sent by the agent's WhatsApp channel, through Twilio and not Meta's own API.")
	e.emit("chatbot_b", map[string]any{"to": e.textOf("recipientPhoneNumber"), "message": e.textOf("textBody")})
}

func convertEmail(c *converter, u *unit) {
	e := c.each(u)
	if u.p.or("operation", "send") != "send" {
		u.fail("OPERATION", "Waiting for an answer to an email: use an approval.")
	}
	data := map[string]any{
		"to":      e.textOf("toEmail"),
		"subject": e.textOf("subject"),
		"body":    e.textOf("text"),
	}
	format := u.p.text("emailFormat")
	if html := u.p.at("html"); html != nil && html != "" && format != "text" {
		data["body"], data["html"] = e.textOf("html"), true
	}
	e.setRecipients(data, "options.ccEmail", "options.bccEmail", "options.replyTo")
	if u.p.text("attachments") != "" || u.p.text("options.attachments") != "" {
		u.approximate("BINARY", "Attachments are not sent.")
	}
	u.noteChannel("email")
	e.emit("email", data)
}

// setRecipients sets further recipients.
func (e *env) setRecipients(data map[string]any, cc, bcc, reply string) {
	for key, path := range map[string]string{
		"cc":       cc,
		"bcc":      bcc,
		"reply_to": reply,
	} {
		if e.u.p.text(path) != "" {
			data[key] = e.textOf(path)
		}
	}
}

// convertGmail converts sending to an email node, and all other operations to requests
// to Gmail.
func convertGmail(c *converter, u *unit) {
	if u.p.text("operation") == "sendAndWait" {
		convertSendAndWait(c, u)
		return
	}
	e := c.each(u)
	if u.p.or("resource", "message") != "message" || u.p.or("operation", "send") != "send" {
		c.service(e)
		return
	}
	data := map[string]any{
		"to":      e.textOf("sendTo"),
		"subject": e.textOf("subject"),
		"body":    e.textOf("message"),
	}
	if u.version < 2 {
		data["to"] = e.textOf("toList.0")
		if list := u.p.list("toList"); len(list) > 0 {
			data["to"] = e.value(list)
		}
	}
	if u.version >= 2 && u.p.or("emailType", "html") == "html" {
		data["html"] = true
	}
	e.setRecipients(data, "options.ccList", "options.bccList", "options.replyTo")
	if u.p.has("options.attachmentsUi") {
		u.approximate("BINARY", "Attachments are not sent.")
	}
	u.noteChannel("email")
	e.emit("email", data)
}
